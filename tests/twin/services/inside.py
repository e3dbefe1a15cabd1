"""Ask a running twin's services for something; for tests."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tests.patience import wait_for
from tests.twin.life import Twin
from tests.twin.services.names import SHADOWED, WEB
from tests.twin.site_file import ROOT
from tests.twin.user import EXAMPLE


def ready(twin: Twin) -> Twin:
    """Wait until the services answer."""
    wait_for("the services", lambda: twin.run("curl", "-sS", "https://hub.twin/").returncode == 0)
    return twin


def shadow(twin: Twin) -> None:
    """From now on the real index's names are the twin's own index, for every client in it."""
    line = f"{WEB} {' '.join(SHADOWED)}"
    twin.run("bash", "-c", f"grep -qxF '{line}' /etc/hosts || echo '{line}' >>/etc/hosts")


def image(twin: Twin, reference: str, *folder: str) -> str:
    """Put a small image for amd64 and arm64 into the registry under a real name, with what is in a
    folder of the twin's on top; gives its digest."""
    argv = ("python3", "-m", "tests.twin.services.image", reference, *folder)
    wait_for("the registry", lambda: twin.run("curl", "-sSf", "https://registry.twin/v2/").returncode == 0)
    done = twin.run(*argv, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PYTHON = r"""
unsquashfs -q -n -f -d /srv/base /srv/base.sqsh >/dev/null
for wheel in /srv/index/{pip-*,torch-2.7.1-*,nvidia_nccl_cu12-2.26.2-*}.whl; do
  python3 -m zipfile -e "$wheel" /srv/base/usr/lib/python3/dist-packages
done
printf '#!/bin/sh\nexec python3 -m pip "$@"\n' >/srv/base/usr/bin/pip
chmod 755 /srv/base/usr/bin/pip
mkdir -p /srv/base/etc/ssl/certs
cp -L /etc/ssl/certs/ca-certificates.crt /srv/base/etc/ssl/certs/
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >/srv/base/etc/pip.conf
mkdir -p /srv/base/etc/pip /srv/base/usr/lib/python3/dist-packages/flash_attn-2.4.2.dist-info
printf '%s\n' flash-attn==2.4.2 packaging==23.2 regex==2024.11.6 >/srv/base/etc/pip/constraint.txt
cd /srv/base/usr/lib/python3/dist-packages
echo 'VERSION = "2.4.2"' >flash_attn.py
printf 'Metadata-Version: 2.1\nName: flash_attn\nVersion: 2.4.2\n' >flash_attn-2.4.2.dist-info/METADATA
printf 'flash_attn.py,,\nflash_attn-2.4.2.dist-info/METADATA,,\n' >flash_attn-2.4.2.dist-info/RECORD
"""


def python_image(twin: Twin, reference: str) -> str:
    """An image with Python and pip, so that `RUN pip install` is real; gives its digest.

    As NVIDIA's it has torch (the index's stand-in), an older flash-attn, and a constraint file that
    its pip obeys.
    """
    if twin.run("test", "-e", "/srv/base/usr/bin/pip").returncode:
        done = twin.run("bash", "-euc", f"{EXAMPLE}/image.sh /srv/base.sqsh{PYTHON}")
        assert done.returncode == 0, done.stderr
    return image(twin, reference, "/srv/base")


def repository(twin: Twin, name: str, files: Mapping[str, str], *, private: bool = False) -> str:
    """A repository on the git host with one commit; gives the commit."""
    bare, work = f"/srv/git/{name}.git", f"/tmp/work-{name.replace('/', '-')}"
    lines = [
        f"rm -rf {bare} {work}",
        f"git init -q --bare -b main {bare}",
        f"git clone -q {bare} {work} 2>/dev/null",
        f"cd {work}",
    ]
    for path, text in files.items():
        lines += [f"mkdir -p $(dirname {path})", f"printf %s {shlex.quote(text)} >{path}"]
    who = "-c user.name=twin -c user.email=twin@git.twin"
    lines += [
        "git add -A",
        f"git {who} commit -qm first",
        "git push -q origin HEAD:main",
        "git rev-parse HEAD",
    ]
    lines += [f"git -C {bare} config uploadpack.allowReachableSHA1InWant true", f"rm -rf {work}"]
    if private:
        lines.append(f"touch {bare}/private")
    done = twin.run("bash", "-euc", "\n".join(lines))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
