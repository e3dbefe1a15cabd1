"""The files of a twin, written from its site into a folder that is copied over the root file system."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hpctrain.runfile.reading.toml import loads
from tests.twin import accounts, modules, old, opened, slurmconf
from tests.twin.rootfs import CACHE
from tests.twin.services import conda_build, names
from tests.twin.site_file import PROJECT_GID, ROOT, USERS, Site
from tests.twin.slurmconf import LOGIN_ADDRESS
from tests.twin.storage import folders, login_only

HERE = Path(__file__).parent
SCRIPTS = ("lib.sh", "site.sh", "node.sh", "node-up.sh", "services.sh", "accounting.sh")
MODULES = "/twin/modulefiles"
PODMAN = """\
#!/bin/bash
# podman as it is; its usual isolation needs cgroups that a twin has not
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} PODMAN_IGNORE_CGROUPSV1_WARNING=1
exec /usr/bin/podman "$@"
"""
SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"
OTHERS = "usr/local/lib/twin-sites"
"""Where the cluster of a site without a plugin of ours is installed."""
SUBORDINATE = "".join(f"{user}:{number * 65536}:65536\n" for number, user in enumerate(USERS, start=4))
"""Numbers that rootless containers may use."""


def write(
    site: Site,
    folder: Path,
    rootfs: Path,
    keep: Sequence[str],
    *,
    powered_down: int = 0,
    accounting: bool = False,
    step_mb: int = 0,
) -> None:
    """Write everything."""
    database = accounts.conf(site) if accounting else ""
    slurm = slurmconf.files(site, powered_down=powered_down, accounting=database, step_mb=step_mb)
    files = {
        **{f"etc/slurm/{k}": v for k, v in slurm.items()},
        **(accounts.files(site) if accounting else {}),
        **{f"twin/modulefiles/{k}": v for k, v in modules.files(site).items()},
        **{f"twin/{name}": (HERE / name).read_text() for name in SCRIPTS},
        "etc/lmod/modulespath": f"{MODULES}\n",
        "etc/hosts": "".join(f"{line}\n" for line in _hosts(site)),
        "etc/resolv.conf": "nameserver 10.0.2.3\n",
        "etc/passwd": (rootfs / "etc/passwd").read_text() + "".join(_passwd(site)),
        "etc/group": (rootfs / "etc/group").read_text() + "".join(_group(site)),
        "etc/subuid": SUBORDINATE,
        "etc/subgid": SUBORDINATE,
        "etc/profile.d/00-site.sh": _profile(site),
        "etc/tinyproxy.conf": _proxy(site),
        "twin/storage": "".join(f"{folder.line}\n" for folder in folders(site, local=False)),
        "twin/node-storage": "".join(f"{folder.line}\n" for folder in folders(site, local=True)),
        "twin/login-storage": "".join(f"{folder.line}\n" for folder in login_only(site)),
        "twin/libraries": "".join(f"{lib.kind} {lib.version} {lib.path}\n" for lib in site.overlay.library),
        **{name[1:].format(short=SHORT): _named(p) for name, p in site.overlay.commands.items()},
        **{f"usr/local/bin/{name}": text for name, text in old.files(site.overlay).items()},
        **{path[1:]: text for path, text in site.overlay.recorded.items()},
        "twin/nodes": "".join(f"{line}\n" for line in _nodes(site)),
        "twin/site.env": _site_env(site, keep),
        "usr/local/bin/hpctrain": _hpctrain(),
    }
    for distribution in (*([site.distribution] if site.overlay.facts else ()), *site.plugins):
        files |= _installed(distribution)
    if site.overlay.edf:
        files |= _edf(site)
    if site.overlay.podman_hpc:
        files |= {"usr/local/bin/podman-hpc": (HERE / "podman_hpc.sh").read_text()}
    for root in site.overlay.conda:
        files |= {f"{root[1:]}/{name}": text for name, text in _conda(root).items()}
    present = [path[1:] for path in site.overlay.present if not (rootfs / path[1:]).exists()]
    files |= {n: "" for n in present if not any(f.startswith(f"{n}/") for f in (*files, *present))}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.parent.name == "bin":
            path.chmod(0o755)
    if site.overlay.conda:
        shutil.copytree(conda_build.ensure(CACHE), folder / "srv/conda")


def _hpctrain() -> str:
    python = shlex.quote(sys.executable)
    return f'#!/bin/bash\nPYTHONPATH=/{OTHERS} exec {python} -m hpctrain "$@"\n'


def _named(program: str) -> str:
    python = shlex.quote(f"{sys.base_prefix}/bin/python3")
    return f'#!/bin/bash\nexec {program.format(python=python)} "$@"\n'


def _installed(distribution: Path) -> dict[str, str]:
    """Somebody else's plugins as an installed distribution."""
    document = loads((distribution / "pyproject.toml").read_text())
    project, info = document["project"], ""
    for group, plugins in project["entry-points"].items():
        info += f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in plugins.items())
    target = document["tool"]["hatch"]["build"]["targets"]["wheel"]
    sources = [
        path
        for name in (*target.get("packages", ()), *target.get("only-include", ()))
        for path in ([distribution / name] if name.endswith(".py") else (distribution / name).iterdir())
        if path.is_file()
    ]
    metadata = f"{OTHERS}/{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    return {f"{OTHERS}/{path.relative_to(distribution)}": path.read_text() for path in sources} | {
        f"{metadata}/METADATA": f"Name: {project['name']}\nVersion: {project['version']}\n",
        f"{metadata}/entry_points.txt": info,
    }


def _edf(site: Site) -> dict[str, str]:
    """CSCS's `--environment` and its tools; what its NCCL hook sets stands in the facts."""
    return {
        "usr/local/bin/podman": PODMAN,
        "usr/local/bin/enroot": (HERE / "enroot.sh").read_text(),
        "usr/local/bin/sarusctl": (HERE / "sarusctl.sh").read_text(),
        "twin/edf.c": (HERE / "edf/edf.c").read_text(),
        "usr/local/lib/twin-edf.py": (HERE / "edf/edf.py").read_text(),
        "twin/edf-hook.json": json.dumps(site.cluster.facts["container_engine"]["sets"]),
        "etc/slurm/plugstack.conf": "required /usr/local/lib/twin-edf.so\n",
    }


def _conda(root: str) -> dict[str, str]:
    """One Miniforge: the commands, the shell function, and a base environment with a Python."""
    python = shlex.quote(sys.executable)
    conda = (
        f"#!/bin/bash\nexport TWIN_CONDA_ROOT={root} PYTHONPATH={shlex.quote(str(ROOT))}\n"
        f'exec {python} -m tests.twin.services.conda "$@"\n'
    )
    return {
        "bin/conda": conda,
        "bin/mamba": conda,
        **dict.fromkeys(("bin/python", "bin/python3"), _named("{python}")),
        "bin/activate": f'. {root}/etc/profile.d/conda.sh\nconda activate "$@"\n',
        "etc/profile.d/conda.sh": (HERE / "services/conda.sh").read_text().replace("ROOT", root),
        "conda-meta/history": "",
    }


def _hosts(site: Site) -> Iterable[str]:
    login = site.overlay.login
    yield "127.0.0.1 localhost"
    yield f"{LOGIN_ADDRESS} {login} {login.partition('.')[0]}"
    yield from names.lines()
    for name in site.overlay.proxy.names if site.overlay.proxy else ():
        if name not in site.proxy_addresses:
            yield f"{LOGIN_ADDRESS} {name}"
    for host in site.hosts:
        yield f"{host.address} {host.name}"


def _passwd(site: Site) -> Iterable[str]:
    for user, uid in USERS.items():
        yield f"{user}:x:{uid}:{uid}::{site.home(user)}:/bin/bash\n"


def _group(site: Site) -> Iterable[str]:
    project = site.cluster.project_of(site.overlay.account) or "project"
    yield f"{project}:x:{PROJECT_GID}:{','.join(USERS)}\n"
    for user, uid in USERS.items():
        yield f"{user}:x:{uid}:\n"


def _profile(site: Site) -> str:
    """The site's variables, for login shells and for what sources /etc/profile in a job."""
    shell = {"user": "$(id -un)", "uid": "$(id -u)", "account": site.overlay.account}
    lines = [f'export {name}="{value.format(**shell)}"' for name, value in site.overlay.variables.items()]
    if site.overlay.system_modules:
        lines.append(f'export LMOD_SYSTEM_DEFAULT_MODULES="{":".join(site.overlay.system_modules)}"')
    return "".join(f"{line}\n" for line in lines)


def _proxy(site: Site) -> str:
    port = site.overlay.proxy.port if site.overlay.proxy else 3128
    lines = ("Timeout 60", "MaxClients 50", "Allow 127.0.0.1", "Allow 10.0.0.0/8", "ConnectPort 443")
    return "\n".join((f"Port {port}", *lines, "LogLevel Error", ""))


def _nodes(site: Site) -> Iterable[str]:
    for host in site.hosts:
        yield f"{host.name} {host.address} {slurmconf.gpus(site, host)} {'wide' if host.wide else 'closed'}"


def _site_env(site: Site, keep: Sequence[str]) -> str:
    def words(values: Iterable[str]) -> str:
        return "(" + " ".join(shlex.quote(v) for v in values) + ")"

    closed = {folder for folder in keep if opened.private(folder)}
    layers = [opened.layer(folder) if folder in closed - {str(ROOT)} else "" for folder in keep]
    values = {
        "login": shlex.quote(site.overlay.login),
        "address": LOGIN_ADDRESS,
        "outside_net": names.NET,
        "outside_addresses": words((names.WEB, names.REGISTRY)),
        "outside_names": names.certified(),
        "checkout": shlex.quote(str(ROOT)),
        "interface": site.cluster.network.interface or "eth1",
        "proxy": "yes" if site.overlay.proxy else "''",
        "proxy_addresses": words(site.proxy_addresses),
        "keep": words(keep),
        "opened": words(layers),
        "private": words(
            "yes" if folder in closed and not layer else ""
            for folder, layer in zip(keep, layers, strict=True)
        ),
        "nets": words(host.name for host in site.hosts),
        "wide": words(["login", *(host.name for host in site.hosts if host.wide)]),
        "users": words(f"{user}:{uid}" for user, uid in USERS.items()),
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())
