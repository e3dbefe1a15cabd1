"""An Apptainer image with an overlay on Olivia: built once, found by the project, never half there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.terminal import typed
from tests.twin import rootfs
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import PATH, Twin
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

SITE = """
[hardware]
gpus_per_node = 1
"""
ALONE = """[storage.env]
owners = []
[storage.images]
owners = []
"""
RUN = """
name = "overlay"
cluster = "olivia"
[resources]
gpus = 1
time = "5m"
account = "nn9999k"
[environment]
packages = ["alpha", "beta"]
[environment.apptainer]
image = "IMAGE"
find_links = ["WHEELS"]
index_url = "file://WHEELS/none"
[train]
use = "command"
[train.command]
argv = ["python", "-c", 'PROGRAM']
[env]
AWKWARD = "a b,c;d=\\"e\\" 'f' $HOME `g` \\\\ æøå"
EMPTY = ""
"""
PROGRAM = (
    "import alpha, beta, json, os, sys; "
    'json.dump([sys.prefix, sys.executable, alpha.__version__, dict(os.environ)], open("said.json", "w"))'
)
OVERLAYS = "/cluster/projects/nn9999k/hpctrain/overlays"
POOL = "/cluster/projects/nn9999k/pool"
ALLOCATION = "salloc -Q -A nn9999k -p accel -N1 -t9 --gpus-per-node=1 -c72 --mem=110G"
ENVIRON = {"PATH": PATH, "TERM": "dumb"}


def prepared(one: Twin) -> Twin:
    """Put a base image and wheels where the project may read them."""
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    one.sh(f"mkdir -p {POOL} && {EXAMPLE}/image.sh {POOL}/base.sqsh && chmod 755 {POOL} {POOL}/base.sqsh")
    one.sh(f"python3 {EXAMPLE}/wheels.py {POOL}/wheels alpha==1.0 beta==2.0 && chmod -R a+rX {POOL}")
    return one


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia with a base image and wheels."""
    return prepared(twin("olivia"))


class Trainee(User):
    """A user of the overlay, as any member of the project."""

    def __init__(self, twin: Twin, name: str = "alice", folder: str = "overlay", **change: str) -> None:
        super().__init__(twin, name, folder)
        self.put("site.toml", SITE)
        text = RUN.replace("PROGRAM", PROGRAM).replace("IMAGE", f"{POOL}/base.sqsh")
        text = text.replace("WHEELS", f"{POOL}/wheels").replace('"overlay"', f'"{folder}"')
        for old, new in change.items():
            text = text.replace(old, new)
        self.put("run.toml", text)

    def hpctrain(self, *words: str, **fields: Any) -> Any:
        env = {"HPCTRAIN_SITE": f"{self.folder}/site.toml", **(fields.pop("env", None) or {})}
        return super().hpctrain(*words, env=env, **fields)

    def trained(self) -> dict[str, Any]:
        """Submit, and wait for the end."""
        self.submit()
        return self.until("done", seconds=120)

    def said(self, found: dict[str, Any]) -> Any:
        return json.loads(self.twin.sh(f"cat {found['path']}/said.json", user=self.name))

    def made(self) -> dict[str, str]:
        """What `plan` says of each step."""
        plan = json.loads(self.hpctrain("plan", "run.toml", "--json").stdout)
        return {
            name: "exists" if there else "build" for name, there in plan["survey"]["artifact_exists"].items()
        }


def overlays(twin: Twin) -> list[str]:
    """The published overlays, as links."""
    return sorted(twin.sh(f"cd {OVERLAYS} && ls -d *.sqsh").split())


def flipped(who: Trainee, name: str) -> None:
    """A bit of the overlay changes: the next run refuses it, and the one after that has built it anew."""
    fault(who.twin, "corrupt", f"{OVERLAYS}/{name}")
    who.submit()
    found = who.until("failed", seconds=60)
    log = who.twin.sh(f"cat {found['path']}/logs/train.log")
    assert f"{OVERLAYS}/{name} is damaged and was set aside" in log
    assert who.trained()["state"] == "done"


@pytest.fixture(scope="module")
def first(olivia: Twin) -> tuple[Trainee, dict[str, Any]]:
    """Alice's first run, from nothing."""
    alice = Trainee(olivia)
    return alice, alice.trained()


def test_from_nothing_to_a_run_in_the_overlay(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, found = first
    assert [row["step"] for row in found["steps"]] == ["inspect", "env", "verify", "train"]
    prefix, executable, version, _ = alice.said(found)
    assert (prefix, executable, version) == ("/user-software", "/user-software/bin/python", "1.0")
    (name,) = overlays(alice.twin)
    assert name.startswith("myenv_")
    assert name.endswith("_arm64.sqsh")
    listed = alice.twin.sh(f"unsquashfs -l {OVERLAYS}/{name}")
    assert "/alpha/__init__.py" in listed
    assert "dist-packages/json" not in listed
    rows = alice.twin.sh(f"unsquashfs -ll {OVERLAYS}/{name}").splitlines()
    modes = {row.split()[0] for row in rows if row[:1] in "-d"}
    assert modes
    assert all(mode[7] == "r" and mode[9] == ("x" if mode[3] == "x" else "-") for mode in modes), modes


def test_every_variable_reaches_the_task_byte_for_byte(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, found = first
    env = alice.said(found)[3]
    planned = json.loads(alice.hpctrain("plan", "run.toml", "--json").stdout)["plan"]
    (train,) = [s for s in planned["steps"] if s["step"]["name"] == "train"]
    plain = {v["name"]: v["value"] for v in train["around"]["env"] if v["how"] == "set"}
    texts = {name: value for name, value in plain.items() if isinstance(value, str)}
    assert {"AWKWARD", "EMPTY", "http_proxy", "https_proxy", "no_proxy"} <= set(texts)
    assert {name: env.get(name) for name in texts} == texts
    assert env["PATH"].startswith("/user-software/bin:")


def test_a_second_member_finds_it_and_builds_nothing(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    bob = Trainee(alice.twin, "bob", folder="overlay")
    assert bob.made() == {"inspect": "exists", "env": "exists", "verify": "exists"}
    found = bob.trained()
    assert {row["step"]: row.get("job") for row in found["steps"]}["env"] is None
    line = f"sha256sum < {OVERLAYS}/{overlays(alice.twin)[0]}"
    assert alice.twin.sh(line, user="bob") == alice.twin.sh(line)
    assert bob.said(found)[0] == "/user-software"


def test_a_list_that_the_run_file_names_is_locked_and_built(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    folder = "/cluster/projects/nn9999k/hpctrain/containers"
    listed = alice.twin.sh(f"cd {folder} && ls -d packages-*.txt").split()[0]
    # An overlay of its own name: no other test's is found, or finds it.
    changed = Trainee(
        alice.twin, folder="listed", find_links=f'name = "listed"\nhas = "{listed}"\nfind_links'
    )
    changed.put(listed, alice.twin.sh(f"cat {folder}/{listed}"))
    found = changed.trained()
    assert [row["step"] for row in found["steps"]] == ["env", "verify", "train"]
    made = alice.twin.sh(f"cat {found['path']}/steps/env/packages.txt")
    assert "alpha==1.0 --hash=sha256:" in made


@pytest.fixture(scope="module")
def second(first: tuple[Trainee, dict[str, Any]]) -> tuple[Trainee, dict[str, Any], str]:
    """Alice's run with one requirement more, and the name of its overlay."""
    twin = first[0].twin
    before = overlays(twin)
    changed = Trainee(twin, folder="changed", **{', "beta"]': ', "beta", "gamma"]'})
    twin.sh(f"python3 {EXAMPLE}/wheels.py {POOL}/wheels gamma==3.0")
    found = changed.trained()
    assert set(before) < set(overlays(twin))
    (new,) = set(overlays(twin)) - set(before)
    return changed, found, new


def test_one_changed_requirement_is_a_second_overlay(second: tuple[Trainee, dict[str, Any], str]) -> None:
    changed, found, new = second
    rank = changed.twin.sh(f"cat {found['path']}/steps/train/rank.sh")
    assert [name for name in overlays(changed.twin) if name in rank] == [new]


def test_a_flipped_bit_is_refused_and_built_anew(second: tuple[Trainee, dict[str, Any], str]) -> None:
    alice, _, name = second
    flipped(alice, name)
    assert name in overlays(alice.twin)


def test_what_somebody_else_planted_is_not_used(olivia: Twin) -> None:
    alice = Trainee(olivia, folder="planted", find_links='name = "planted"\nfind_links')
    alice.put("site.toml", SITE + ALONE)
    planned = alice.hpctrain("plan", "run.toml").stdout
    name = next(word for word in planned.split() if word.startswith("planted_"))
    plant = (
        f"mkdir -p .hpc-x && echo evil >.hpc-x/content && chmod -R g+rX .hpc-x && ln -s .hpc-x/content {name}"
    )
    olivia.sh(f"cd {OVERLAYS} && {plant}", user="bob")
    refused = alice.hpctrain("submit", "run.toml")
    assert refused.returncode == 2
    reason = f"{name} belongs to bob, who is not among the owners you accept"
    assert reason in " ".join(refused.stderr.split())
    olivia.sh(f"rm -r {OVERLAYS}/{name} {OVERLAYS}/.hpc-x", user="bob")
    assert alice.trained()["state"] == "done"


def test_a_missing_package_fails_in_the_build_and_says_so(olivia: Twin) -> None:
    none = Trainee(olivia, folder="none", **{'"alpha"': '"no-such-package-here"'})
    none.submit()
    found = none.until("failed", seconds=120)
    states = {row["step"]: row["state"] for row in found["steps"]}
    assert states["env"] == "failed"
    assert "No matching distribution found for no-such-package-here" in olivia.sh(
        f"cat {found['path']}/logs/env.log"
    )
    assert not [n for n in overlays(olivia) if n.startswith("none")]


def test_exec_and_shell_are_inside_the_overlay(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    look = "import alpha, os, sys; print(sys.prefix, alpha.__version__, os.environ['AWKWARD'][:6])"
    done = alice.hpctrain("exec", "run.toml", "--", "python", "-c", look)
    assert (done.returncode, done.stdout) == (0, "/user-software 1.0 a b,c;\n"), done.stderr
    site = ("env", f"HPCTRAIN_SITE={alice.folder}/site.toml", "hpctrain", "shell", "run.toml")
    argv = alice.twin.inside(site, alice.name, alice.folder)
    code, shown = typed(argv, ['python -c "import sys; print(sys.prefix)"', "exit 3"], cwd="/", env=ENVIRON)
    assert code == 3, shown
    assert "\n/user-software\r" in shown


def test_run_here_trains_in_the_overlay_within_an_allocation(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    Trainee(alice.twin, folder="here")
    line = f"cd ~/here && HPCTRAIN_SITE=$PWD/site.toml {ALLOCATION} hpctrain run run.toml --here"
    assert alice.twin.sh(line) == "here/1\n"
    found = json.loads(alice.hpctrain("status", "here", "--json").stdout)
    assert (found["state"], alice.said(found)[0]) == ("done", "/user-software")
