"""Publishing in bash: complete or not there, whoever is killed and whenever."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hpctrain import versions
from hpctrain.run.system.tools import Tools
from tests.conftest import ROOT, needs
from tests.run.conftest import mode
from tests.run.test_files import small_disk as small_disk

SCRIPT = ROOT / "core/hpctrain/render/publish.sh"
ROUNDS = int(os.environ.get("HPCTRAIN_SOAK", "25"))

BUILD = """
if ! hpc_exists "$1"; then
    hpc_begin "$1"
    mkdir "$WORK" "$WORK/sub dir"
    for n in {1..40}; do printf '%s\\n' "$2" >"$WORK/sub dir/$n"; done
    hpc_publish "$1"
fi
"""


def start(body: str, *arguments: object, **env: str) -> subprocess.Popen[str]:
    """A bash that has sourced publish.sh, in a process group of its own."""
    script = f"set -euo pipefail; umask 077; . {SCRIPT}\n{body}"
    base = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    return subprocess.Popen(
        ["bash", "-c", script, "bash", *map(str, arguments)],
        env=base | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def bash(body: str, *arguments: object, code: int = 0, **env: str) -> str:
    """Run to the end, expect `code`, return both outputs."""
    child = start(body, *arguments, **env)
    out, err = child.communicate(timeout=60)
    assert child.returncode == code, f"{child.returncode}: {out}{err}"
    return out + err


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def only_target(link: Path) -> str:
    assert link.is_symlink()
    return link.readlink().parts[0]


def verified(link: Path) -> bool:
    bash('hpc_verify "$1"', link)
    return True


@pytest.mark.parametrize("name", ["env-1", "a b 'c' \"d\" $x `y`.sqsh", "ünïcode", "-dash", "new\nline"])
def test_any_path_is_published_with_its_manifest(tmp_path: Path, name: str) -> None:
    link = tmp_path / 'fold\'er "x"' / name
    bash(BUILD, link, "one")
    assert (link / "sub dir" / "40").read_text() == "one\n"
    work = link.parent / only_target(link)
    head, *lines = (work / "MANIFEST").read_text().splitlines()
    shown = name.replace("\n", "\\n")
    assert head == f"# hpctrain manifest {versions.MANIFEST} {shown}"
    assert len(lines) == 40
    assert lines[0].split(" ", 1)[0] == "4"
    assert {p.name for p in work.iterdir()} == {"MANIFEST", "content"}
    assert mode(work) == 0o700
    assert not link.readlink().is_absolute()
    assert verified(link)
    bash('hpc_exists "$1"', link)


def test_a_single_file_is_published_too(tmp_path: Path) -> None:
    bash('cd "$1"; hpc_begin x.sqsh; echo hi >"$WORK"; cd /; hpc_publish "$1/x.sqsh"', tmp_path)
    assert (tmp_path / "x.sqsh").read_text() == "hi\n"
    assert verified(tmp_path / "x.sqsh")


def test_an_empty_folder_and_odd_names_have_manifests(tmp_path: Path) -> None:
    bash('hpc_begin "$1/empty"; mkdir "$WORK"; hpc_publish "$1/empty"', tmp_path)
    body = 'hpc_begin "$1/odd"; mkdir "$WORK"; touch "$WORK/"{$\'a\\nb\',\'c\\d\',-e}; hpc_publish "$1/odd"'
    bash(body, tmp_path)
    assert verified(tmp_path / "empty")
    assert verified(tmp_path / "odd")
    (tmp_path / "odd" / "a\nb").write_text("changed")
    bash('hpc_verify "$1/odd"', tmp_path, code=7)


def test_a_venv_runs_through_the_link(tmp_path: Path) -> None:
    link = tmp_path / "my env"
    body = """
    hpc_begin "$1"
    "$2" -m venv --without-pip "$WORK"
    hpc_publish "$1"
    . "$1/bin/activate"
    python -c 'import sys; print(sys.prefix)'
    """
    import sys

    prefix = bash(body, link, sys.executable).strip()
    assert Path(prefix).resolve() == link.resolve()
    ran = Tools().run(
        [str(link / "bin" / "python"), "-c", "import sys; print(sys.prefix != sys.base_prefix)"]
    )
    assert ran.out == "True\n"


def test_the_first_wins_and_the_loser_succeeds(tmp_path: Path) -> None:
    link = tmp_path / "env"
    body = (
        'hpc_begin "$1"; echo late >"$WORK"; read -r _; hpc_publish "$1"; echo "${WORK-unset}"; hpc_abandon'
    )
    loser = subprocess.Popen(
        ["bash", "-c", f"set -euo pipefail; . {SCRIPT}\n{body}", "bash", link],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not left(tmp_path):
        time.sleep(0.01)
    bash(BUILD, link, "first")
    out, _ = loser.communicate("go\n", timeout=30)
    assert (loser.returncode, out) == (0, "unset\n")
    assert (link / "sub dir" / "1").read_text() == "first\n"
    assert left(tmp_path) == [only_target(link)]


def test_a_link_whose_content_was_purged_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "env"
    link.symlink_to(".hpc-env.host.1.00000000/content")
    bash('! hpc_exists "$1"', link)
    bash(BUILD, link, "again")
    assert (link / "sub dir" / "1").read_text() == "again\n"
    assert left(tmp_path) == [only_target(link)]


@pytest.mark.parametrize("folder", [True, False])
def test_what_is_no_link_of_ours_is_never_touched(tmp_path: Path, folder: bool) -> None:
    thing = tmp_path / "env"
    thing.mkdir() if folder else thing.write_text("precious")
    assert "is in the way" in bash(BUILD, thing, "x", code=7)
    assert not thing.is_symlink()
    assert left(tmp_path) == []


def test_nothing_made_is_nothing_published(tmp_path: Path) -> None:
    said = bash('trap hpc_abandon EXIT; hpc_begin "$1"; hpc_publish "$1"', tmp_path / "x", code=1)
    assert "the step made nothing at" in said
    assert list(tmp_path.iterdir()) == []


def test_abandoning_removes_read_only_folders_and_may_be_repeated(tmp_path: Path) -> None:
    body = 'hpc_begin "$1"; mkdir -p "$WORK/a/b"; touch "$WORK/a/b/c"; chmod 500 "$WORK/a/b"'
    bash(f"{body}; hpc_abandon; hpc_abandon", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["changed", "cut", "missing", "newer", "none"])
def test_damage_is_seen(tmp_path: Path, damage: str) -> None:
    link = tmp_path / "env"
    bash(BUILD, link, "one")
    manifest, victim = link.parent / only_target(link) / "MANIFEST", link / "sub dir" / "7"
    if damage == "changed":
        victim.write_text("onf\n")
    elif damage == "cut":
        victim.write_text("")
    elif damage == "missing":
        victim.unlink()
    elif damage == "newer":
        manifest.write_text(manifest.read_text().replace("manifest 1", "manifest 2", 1))
    else:
        manifest.unlink()
    said = bash('hpc_verify "$1"', link, code=7)
    wanted = {"newer": "another version", "none": "has no manifest"}
    assert wanted.get(damage, "does not match its manifest") in said


def test_files_added_later_do_no_harm(tmp_path: Path) -> None:
    bash(BUILD, tmp_path / "env", "one")
    (tmp_path / "env" / "x.pyc").write_text("")
    assert verified(tmp_path / "env")


def test_a_full_disk_publishes_nothing(small_disk: Path) -> None:
    body = """
    trap hpc_abandon EXIT
    hpc_begin "$1"; mkdir "$WORK"
    head -c 1040000 /dev/zero >"$WORK/big"
    for n in {1..200}; do : >"$WORK/a-rather-long-name-for-a-file-in-a-full-disk-$n"; done 2>/dev/null || true
    hpc_publish "$1"
    """
    said = bash(body, small_disk / "env", code=74)
    assert "nothing was published" in said
    assert list(small_disk.iterdir()) == []


def test_anothers_artifact_is_used_only_when_its_owner_is_accepted(tmp_path: Path) -> None:
    needs("root", os.geteuid() == 0, "only root can give a file to another user")
    link = tmp_path / "env"
    bash(BUILD, link, "theirs")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    os.chown(link.resolve().parent, 65534, 65534)
    bash('! hpc_exists "$1"', link)
    assert "belongs to nobody" in bash('hpc_begin "$1"', link, code=7)
    bash('hpc_exists "$1"', link, HPC_OWNERS="ada nobody")
    (link / "sub dir" / "1").write_text("planted")
    bash('hpc_exists "$1"', link, code=7, HPC_OWNERS="nobody")


def test_sharing_opens_what_is_published_to_the_group_alone(tmp_path: Path) -> None:
    link = tmp_path / "new" / "env"
    bash(BUILD, link, "ours", HPC_SHARE="project")
    assert link.parent.stat().st_mode & 0o7777 == 0o1770  # others publish beside it and replace nothing
    assert mode(link.resolve().parent) == 0o750
    assert mode(link / "sub dir" / "1") == 0o640
    private = tmp_path / "private" / "env"
    bash(BUILD, private, "mine")
    assert [mode(private.parent), mode(private / "sub dir" / "1")] == [0o700, 0o600]


def test_shellcheck_has_nothing_to_say() -> None:
    tools = Tools()
    needs("shellcheck", tools.which("shellcheck") is not None, "shellcheck is not installed")
    assert tools.run(["shellcheck", str(SCRIPT)]).out == ""


@pytest.mark.parametrize("whom", ["$$", "$BASHPID"], ids=["the script", "the subshell too"])
def test_a_kill_at_every_command_leaves_nothing_half_visible(tmp_path: Path, whom: str) -> None:
    """The DEBUG trap kills before the n-th command, for every n until none is left."""
    deadly = f"at=$3 count=0; set -T; trap '((++count != at)) || kill -9 {whom}' DEBUG\n"
    for at in range(1, 1000):
        link = tmp_path / str(at) / "env"
        victim = start(deadly + BUILD.replace("40", "2"), link, "victim", at)
        victim.communicate(timeout=60)
        if link.exists():
            assert verified(link)
        bash(BUILD, link, "second")
        assert verified(link)
        assert len(set(left(link.parent))) <= 2
        if victim.returncode == 0:
            break
    assert 30 < at < 999


OBSERVER = """
seen=0
while [[ ! -e $2 ]]; do
    if [[ -e $1 ]]; then seen=1; hpc_verify "$1" || { echo HALF; exit 1; }; fi
done
echo "seen $seen"
"""


def kill_group(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)


def test_three_builders_with_random_kills(tmp_path: Path) -> None:
    chance = random.Random(4711)
    killed = won = 0
    for number in range(ROUNDS):
        link, stop = tmp_path / str(number) / "env", tmp_path / f"stop{number}"
        link.parent.mkdir()
        if number % 4 == 0:
            link.symlink_to(".hpc-env.host.1.00000000/content")
        observer = start(OBSERVER, link, stop)
        builders = [start(BUILD, link, f"builder {n}") for n in range(3)]
        for victim in builders if number % 5 == 0 else builders[:1]:
            time.sleep(chance.uniform(0, 0.15))
            kill_group(victim)
        for builder in builders:
            _, err = builder.communicate(timeout=60)
            assert builder.returncode in (0, -signal.SIGKILL), err
            killed += builder.returncode != 0
        won += link.exists()
        bash(BUILD, link, "the next")
        stop.touch()
        out, err = observer.communicate(timeout=60)
        assert out.startswith("seen"), out + err
        texts = {p.read_text() for p in link.rglob("*") if p.is_file()}
        assert len(texts) == 1
        assert len(list(link.rglob("[0-9]*"))) == 40
        assert verified(link)
    assert killed >= ROUNDS // 3
    assert won >= ROUNDS // 2
