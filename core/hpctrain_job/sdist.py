"""Bring the source archive of a package without running any of it.

`python -m hpctrain_job.sdist FOLDER NAME==VERSION[=SHA256] … [--index-url URL] [--find-links PLACE]`

pip runs a package's own code to learn its metadata, even to download it; what is compiled against
torch then fails on a computer without torch. Here the archive is looked up in the index by its name.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import contextlib
import html.parser
import os
import re
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hpctrain_job import exit_codes
from hpctrain_job.downloads.credentials import login_for
from hpctrain_job.downloads.web import Failed, Patience, WrongContent, get_text, transfer
from hpctrain_job.tree import digest

DEFAULT = "https://pypi.org/simple"
MOST = 4 << 20
"""Bytes that are read of a PKG-INFO or a pyproject.toml: the largest are some hundred kilobytes."""
ENDS = (".tar.gz", ".zip", ".tgz")
_REQUIRES = re.compile(r"""^requires\s*=\s*(\[(?:[^\]"'#]|"[^"]*"|'[^']*'|#[^\n]*)*\])""", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """Where archives are looked for: indexes by their addresses, folders or pages of links."""

    indexes: tuple[str, ...] = (DEFAULT,)
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceArchive:
    """One archive: its file, its hash, what it is built with and what it needs when it runs."""

    file: Path
    sha256: str
    build: tuple[str, ...]
    requires: tuple[str, ...]


class NotThere(Failed):
    """No index or folder has the source archive."""

    exit_code = exit_codes.ABSENT


def fetch(
    name: str,
    version: str,
    folder: Path,
    places: Places,
    patience: Patience | None = None,
    say: Callable[[str], None] = print,
) -> SourceArchive:
    """The source archive of `name` at `version`, in `folder`; NotThere only when every index answered."""
    silent: list[str] = []
    other_versions: list[str] = []
    for page, links in _pages(name, places, patience or Patience(tries=4, longest=30), silent, say):
        for text, url in links:
            candidate = _version(text, name)
            if candidate == version:
                file, fragment = folder / text, urllib.parse.urldefrag(url).fragment
                _bring(urllib.parse.urljoin(page, url), file, page, patience, say)
                return read(file, fragment.partition("sha256=")[2])
            other_versions += [candidate] if candidate else []
    if silent:
        raise Failed(f"nobody knows whether there is a source of {name} {version}: {'; '.join(silent)}")
    near = [v for v in other_versions if v.startswith(version)] or other_versions[-4:]
    suggestion = f"; there is {', '.join(near)}" if near else ""
    raise NotThere(f"no index has the source of {name} {version}{suggestion}")


def read(file: Path, expected: str = "") -> SourceArchive:
    """What an archive says about itself; WrongContent when it is not the one that is meant, or damaged."""
    sha256 = digest(file)
    if expected and sha256 != expected:
        file.unlink()
        raise WrongContent(f"{file.name} has the hash {sha256}, not {expected}")
    try:
        texts = _texts(file)
        build = build_needs(texts.get("pyproject.toml", ""))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise WrongContent(f"{file.name} is no source archive that can be read: {error}") from None
    return SourceArchive(file, sha256, build, _needs(texts.get("PKG-INFO", "")))


def build_needs(pyproject: str) -> tuple[str, ...]:
    """`[build-system] requires` of a pyproject.toml, or what pip takes where there is none."""
    table = re.split(r"^\[", pyproject.partition("[build-system]")[2], maxsplit=1, flags=re.MULTILINE)[0]
    match = _REQUIRES.search(table)
    if not match:
        return ("setuptools", "wheel")
    try:  # A TOML list of strings is a Python list too, comments included; tomllib begins with 3.11.
        return tuple(ast.literal_eval(match[1]))
    except SyntaxError as error:
        raise ValueError(f"requires of [build-system]: {error.msg}") from None


def configured(environ: Mapping[str, str]) -> Places:
    """The places of pip's own configuration."""
    settings = pip_settings(environ, "download")
    links = tuple(settings.get("find-links", "").split())
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return Places((), links)
    return Places((settings.get("index-url", DEFAULT), *settings.get("extra-index-url", "").split()), links)


def pip_settings(environ: Mapping[str, str], command: str) -> dict[str, str]:
    """What pip is told for one of its commands: by its files, then by its variables.

    Read here because the Python at hand may have no pip to ask.
    """
    rows: dict[str, str] = {}
    for file in _files(environ):
        parser = configparser.RawConfigParser()
        with contextlib.suppress(configparser.Error, OSError):
            parser.read(file, encoding="utf-8")
        rows.update((k, v) for part in ("global", command) if part in parser for k, v in parser[part].items())
    rows.update((k[4:].lower().replace("_", "-"), v) for k, v in environ.items() if k.startswith("PIP_"))
    return rows


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME", "/"))
    yield Path("/etc/pip.conf")
    yield home / ".pip/pip.conf"
    yield Path(environ.get("XDG_CONFIG_HOME", str(home / ".config")), "pip/pip.conf")
    if named := environ.get("PIP_CONFIG_FILE"):
        yield Path(named)


def _needs(metadata: str) -> tuple[str, ...]:
    head = metadata.partition("\n\n")[0]
    every = re.findall(r"^Requires-Dist:\s*(.+)$", head, re.MULTILINE)
    return tuple(r.strip() for r in every if not re.search(r";.*\bextra\b", r))


def _texts(file: Path) -> dict[str, str]:
    """PKG-INFO and pyproject.toml at the top of the archive."""
    file_names = ("PKG-INFO", "pyproject.toml")
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            named = {n.split("/")[1]: n for n in archive.namelist() if n.count("/") == 1}
            members = {w: archive.open(named[w]) for w in file_names if w in named}
            return {w: _start(member) for w, member in members.items()}
    texts = {}
    with tarfile.open(file) as tar:
        for member in tar:
            parts = member.name.removeprefix("./").split("/")
            if len(parts) == 2 and parts[1] in file_names and (body := tar.extractfile(member)):
                texts[parts[1]] = _start(body)
    return texts


def _start(member: IO[bytes]) -> str:
    """A member's text, up to MOST: what an archive says of its size is not to be believed."""
    return member.read(MOST).decode("utf-8", "replace")


def _version(text: str, name: str) -> str:
    """The version of an archive's file name, or nothing where it is another's, or a wheel."""
    end = next((e for e in ENDS if text.endswith(e)), "")
    stem, _, version = text.removesuffix(end).rpartition("-")
    return version if end and _normal(stem) == _normal(name) else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pages(
    name: str, places: Places, patience: Patience, silent: list[str], say: Callable[[str], None]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for place in places.links:
        folder = Path(urllib.parse.urlparse(place).path if place.startswith("file:") else place)
        if folder.is_dir():
            yield "", [(p.name, p.as_uri()) for p in folder.iterdir()]
        elif place.startswith("http"):
            yield place, _links(get_text(place, patience=patience, say=say))
    for index in places.indexes:
        page = f"{index.rstrip('/')}/{_normal(name)}/"
        try:
            yield page, _links(_text(page, patience, say))
        except (Failed, OSError) as error:
            if not (isinstance(error, FileNotFoundError) or getattr(error, "status", 0) == 404):
                silent.append(str(error))


def _text(page: str, patience: Patience, say: Callable[[str], None]) -> str:
    if page.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlparse(page).path), "index.html").read_text()
    return get_text(page, patience=patience, say=say)


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") if tag == "a" else None
        if href:
            path = urllib.parse.urlparse(href).path
            self.links.append((urllib.parse.unquote(path.rsplit("/", 1)[-1]), href))


def _links(page: str) -> list[tuple[str, str]]:
    reader = _Anchors()
    reader.feed(page)
    return reader.links


def _bring(url: str, file: Path, page: str, patience: Patience | None, say: Callable[[str], None]) -> None:
    url = urllib.parse.urldefrag(url).url
    if url.startswith("file:"):
        file.write_bytes(Path(urllib.request.url2pathname(urllib.parse.urlparse(url).path)).read_bytes())
        return
    part = file.with_name(file.name + ".part")
    login = login_for(url, page)
    transfer(url, part, headers={"Authorization": login} if login else {}, patience=patience, say=say)
    part.replace(file)
    part.with_name(part.name + ".etag").unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.sdist", description="fetch source archives")
    parser.add_argument("folder", type=Path)
    parser.add_argument("wanted", nargs="+", metavar="NAME==VERSION[=SHA256]")
    parser.add_argument("--index-url", default="")
    parser.add_argument("--find-links", action="append", default=[])
    args = parser.parse_args(argv)
    configuration = configured(os.environ)
    indexes = (args.index_url,) if args.index_url else configuration.indexes
    places = Places(indexes, (*args.find_links, *configuration.links))
    for requirement in args.wanted:
        name, version, *sha256 = re.split("==|=", requirement)
        try:
            (folder := args.folder / name).mkdir(parents=True, exist_ok=True)
            archive = fetch(name, version, folder, places)
            read(archive.file, *sha256)
        except Failed as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        print(f"{archive.file.name} sha256:{archive.sha256}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
