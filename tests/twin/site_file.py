"""A twin as data: the cluster's facts, and the little that a twin adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from hpctrain.model.cluster import Cluster, Place
from hpctrain.runfile.facts import load_facts
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.reading.toml import loads

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
USERS = {"alice": 61001, "bob": 61002}
"""Ordinary users in one project group; nobody of that number exists outside."""
PROJECT_GID = 61000


@attrs.frozen(kw_only=True)
class Node:
    """Nodes of one kind; they are what `place` of the facts says."""

    place: str
    names: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    """Empty: all that no other node claims."""
    features: tuple[str, ...] = ()
    cpus: int = 0
    memory_mb: int = 0
    """Zero: as the facts' hardware."""


@attrs.frozen(kw_only=True)
class Module:
    """A module file: the documents' name, and what it does to the environment."""

    name: str
    set: Mapping[str, str] = attrs.field(factory=dict)
    prepend: Mapping[str, str] = attrs.field(factory=dict)
    needs: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Library:
    """A library that modules bring, compiled in the twin: `services/libraries.py` knows the kinds."""

    kind: str
    version: str
    path: str


@attrs.frozen(kw_only=True)
class Proxy:
    """The way out of compute nodes that have none: addresses or names, all the login node's."""

    names: tuple[str, ...]
    port: int


@attrs.frozen(kw_only=True)
class Honest:
    """What a test on this twin proves, and what not."""

    real: tuple[str, ...]
    stand_in: tuple[str, ...]
    absent: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Overlay:
    """One file below `sites/`."""

    login: str
    account: str
    node: tuple[Node, ...]
    honest: Honest
    facts: str = ""
    """The folder from here of somebody else's distribution, which has the facts; empty: ours, `hpc_NAME`."""
    plugins: tuple[str, ...] = ()
    """Folders from here of further distributions of others."""
    home: str = ""
    exclusive: bool = False
    """Jobs get whole nodes."""
    gpus_required: bool = False
    """A request without GPUs is refused."""
    refuses_mem_0: bool = False
    """`--mem=0`, all memory of a node, is refused."""
    default_account: bool = False
    """A job without an account is taken, and the site charges one of its own choice."""
    wrong_account: str = "Invalid account or account/partition combination specified"
    """What the site says to an account that is not the project's."""
    default_partition: str = ""
    edf: bool = False
    """`srun --environment`: the stand-in for CSCS's Container Engine."""
    podman_hpc: bool = False
    """NERSC's podman-hpc: a stand-in over podman."""
    system_modules: tuple[str, ...] = ()
    conda: tuple[str, ...] = ()
    """Where the site has its Miniforge: a stand-in for each."""
    commands: Mapping[str, str] = attrs.field(factory=dict)
    """Other names of the twin's programs, as the site has them; `{python}` is this machine's Python,
    `{short}` its version, 3.11."""
    login_only: tuple[str, ...] = ()
    """Folders of each user that the site made on the login node alone."""
    system_python: str = ""
    system_gcc: str = ""
    """What /usr/bin has on the site: `old.py` makes stand-ins that refuse what these would refuse."""
    library: tuple[Library, ...] = ()
    variables: Mapping[str, str] = attrs.field(factory=dict)
    module: tuple[Module, ...] = ()
    proxy: Proxy | None = None
    slurm: tuple[str, ...] = ()
    """Lines of slurm.conf: partitions, and nodes that are powered down; empty: those of the facts' queues."""
    accounting: tuple[str, ...] = ()
    """sacctmgr's words; empty: those of the facts' QoS."""
    recorded: Mapping[str, str] = attrs.field(factory=dict)
    """A program's path, and the script that gives the answers which a capture recorded."""
    present: tuple[str, ...] = ()
    """Files that are there and empty."""
    made: tuple[str, ...] = ()
    """Folders that alice made before: of somebody who has runs already."""


@attrs.frozen(kw_only=True)
class Host:
    """One node of a twin."""

    name: str
    address: str
    kind: Node
    place: Place

    @property
    def wide(self) -> bool:
        """It reaches the internet without a proxy."""
        return any(need.value == "network" for need in self.place.provides) and not self.place.env


@attrs.frozen(kw_only=True)
class Site:
    """Facts and overlay together: all that the files of a twin are made from."""

    name: str
    cluster: Cluster
    overlay: Overlay
    distribution: Path
    """The folder with the cluster's pyproject.toml."""

    @property
    def plugins(self) -> tuple[Path, ...]:
        """The folders of further distributions."""
        return tuple(HERE / folder for folder in self.overlay.plugins)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Every node with its address."""
        found: list[Host] = []
        for kind in self.overlay.node:
            place = self.cluster.place_named(kind.place)
            assert place is not None, f"{self.name} has no place {kind.place}"
            for name in kind.names:
                address = f"10.77.1.{len(found) + 1}"
                found.append(Host(name=name, address=address, kind=kind, place=place))
        return tuple(found)

    @property
    def proxy_addresses(self) -> tuple[str, ...]:
        """Proxies that the facts name by number."""
        names = self.overlay.proxy.names if self.overlay.proxy else ()
        return tuple(name for name in names if name.replace(".", "").isdigit())

    def template(self, path: str) -> str:
        """A path of the facts with the home and the site's variables opened; {user} and the like stay."""
        if "{home}" in path:
            path = path.replace("{home}", self.cluster.storage["home"].path)
        for name, value in {**self.overlay.variables, "HOME": self.overlay.home}.items():
            path = path.replace(f"${{{name}}}", value)
        return path

    def fill(self, path: str, user: str) -> str:
        """A path of the facts for one user of the twin."""
        account = self.overlay.account
        fields = {"user": user, "uid": USERS[user], "account": account}
        fields["project"] = self.cluster.project_of(account)
        return self.template(path).format(**fields)

    def home(self, user: str) -> str:
        """Where a user is after logging in."""
        return self.fill(self.cluster.storage["home"].path, user)


def names() -> tuple[str, ...]:
    """The twins there are."""
    return tuple(sorted(path.stem for path in HERE.glob("sites/*.toml")))


def overlay_of(name: str) -> Overlay:
    """Its file; a key that nobody knows is an error."""
    overlay, faults = Strict()(loads((HERE / f"sites/{name}.toml").read_text()), Overlay)
    assert overlay is not None, f"sites/{name}.toml: {faults}"
    return overlay


def load(name: str) -> Site:
    """Facts and overlay of one of the twins."""
    overlay = overlay_of(name)
    found = HERE / overlay.facts if overlay.facts else ROOT / f"hpc_{name}"
    facts = load_facts(found / f"hpc_{name}")
    return Site(name=name, cluster=facts.cluster, overlay=overlay, distribution=found)
