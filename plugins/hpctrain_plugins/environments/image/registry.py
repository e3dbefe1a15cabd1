"""Asking a registry what a tag is: the digest of one architecture's manifest. Standard library."""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from hpctrain.plugin import ConfigError, NotReachable
from hpctrain_job.files import documents
from hpctrain_plugins.environments.image import Image

SECONDS = 60
LARGEST = 8 << 20
ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


def digest(image: Image, arch: str, where: str, instead: str = "") -> str:
    """The digest of the image for `arch` (arm64); a ConfigError says when there is none.

    `instead` is what a run file says to need no registry.
    """
    reference = image.digest or image.tag or "latest"
    try:
        body, token = _manifest(image, reference)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refused(image, error, where) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
        raise NotReachable.of(
            "registry",
            f"{image.registry} does not answer: {reason}",
            where=where,
            hint=instead,
        ) from None
    document = documents.parse(body)
    if "manifests" in document:
        return _of_arch(image, document["manifests"], arch, where)
    made_for = str(_json(image, f"blobs/{document['config']['digest']}", token).get("architecture", ""))
    if made_for != arch:
        raise _wrong(image, [made_for], arch, where)
    return "sha256:" + hashlib.sha256(body).hexdigest()


def _of_arch(image: Image, rows: list[dict[str, Any]], arch: str, where: str) -> str:
    digests = {str(row.get("platform", {}).get("architecture", "")): str(row["digest"]) for row in rows}
    if arch not in digests:
        raise _wrong(image, sorted(set(digests) - {"", "unknown"}), arch, where)
    return digests[arch]


def _wrong(image: Image, has: list[str], arch: str, where: str) -> ConfigError:
    return ConfigError.of(
        "image-arch",
        f"{image.text} is made for {' and '.join(has) or 'nothing known'}, and the training nodes are {arch}",
        where=where,
        hint=f"an image that is made for {arch} too; NVIDIA's are",
    )


def _refused(image: Image, error: urllib.error.HTTPError, where: str) -> ConfigError:
    reason = {401: "wants a login for", 403: "wants a login for", 404: "has no"}.get(error.code)
    message = f"{image.registry} {reason}" if reason else f"{image.registry} answers {error.code} to"
    return ConfigError.of("no-image", f"{message} {image.repository}:{image.tag or 'latest'}", where=where)


def _manifest(image: Image, reference: str) -> tuple[bytes, str]:
    """The manifest, and the token that was needed for it: registries hand one out to everybody."""
    try:
        return _get(image, f"manifests/{reference}", ""), ""
    except urllib.error.HTTPError as error:
        challenge = dict(_CHALLENGE.findall(error.headers.get("WWW-Authenticate", "")))
        if error.code != 401 or "realm" not in challenge:
            raise
        error.close()
    query = {"scope": challenge.get("scope", f"repository:{image.repository}:pull")}
    if "service" in challenge:
        query["service"] = challenge["service"]
    answer = documents.parse(_read(f"{challenge['realm']}?{urllib.parse.urlencode(query)}", {}))
    token = str(answer.get("token") or answer.get("access_token") or "")
    return _get(image, f"manifests/{reference}", token), token


def _json(image: Image, path: str, token: str) -> dict[str, Any]:
    document: dict[str, Any] = documents.parse(_get(image, path, token))
    return document


def _get(image: Image, path: str, token: str) -> bytes:
    plain = image.registry.startswith(("localhost", "127."))
    address = f"{'http' if plain else 'https'}://{image.registry}/v2/{image.repository}/{path}"
    return _read(address, {"Authorization": f"Bearer {token}"} if token else {})


def _read(url: str, private: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, "User-Agent": "hpctrain"})  # noqa: S310
    for name, value in private.items():  # not for the host of a redirect
        request.add_unredirected_header(name, value)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        body: bytes = answer.read(LARGEST)
    return body
