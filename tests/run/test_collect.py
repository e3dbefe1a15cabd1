"""What killed builders left behind goes; what lives or is published stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hpctrain.run.artifacts import collect
from hpctrain.run.disk.directory import RunDirectory
from tests.run.test_publish import BUILD, bash, kill_group, left, only_target, start, verified

HOUR = 3600.0


def found(root: Path, hours: float = 2) -> list[collect.Orphan]:
    """Orphans as seen two hours from now."""
    return collect.orphans([root], older_than_s=hours * HOUR - 60, now=time.time() + 2 * HOUR)


def begun(root: Path, link: str = "env") -> str:
    """Leave behind what a killed builder leaves; the name of its work folder."""
    before = set(left(root)) if root.exists() else set()
    child = start(
        'hpc_begin "$1"; mkdir "$WORK"; echo x >"$WORK/x"; chmod 500 "$WORK"; kill -9 $$', root / link
    )
    child.communicate(timeout=30)
    (name,) = set(left(root)) - before
    return name


def test_orphans_are_found_and_removed_and_nothing_else_is(tmp_path: Path) -> None:
    bash(BUILD, tmp_path / "sub" / "env", "published")
    orphan = begun(tmp_path / "sub", "with.dots-and.more.sqsh")
    (tmp_path / "sub" / ".hpc-notes").mkdir()
    (tmp_path / "sub" / "mine").mkdir()
    (tmp_path / "sub" / ".hpc-file.host.1.00000000").write_text("")
    (orphaned,) = found(tmp_path)
    assert orphaned.path == tmp_path / "sub" / orphan
    assert orphaned.age_s >= 2 * HOUR - 60
    assert orphaned.bytes > 0
    assert collect.remove(orphaned)
    assert found(tmp_path) == []
    assert {".hpc-notes", only_target(tmp_path / "sub" / "env")} < set(left(tmp_path / "sub"))
    assert orphan not in left(tmp_path / "sub")
    assert verified(tmp_path / "sub" / "env")


def test_young_work_is_left_whoever_made_it(tmp_path: Path) -> None:
    begun(tmp_path)
    assert found(tmp_path, hours=3) == []
    assert collect.orphans([tmp_path]) == []


def test_work_that_changed_deep_inside_is_young(tmp_path: Path) -> None:
    work = tmp_path / begun(tmp_path)
    old = time.time() - 100 * HOUR
    for path in (work, work / "content"):
        os.utime(path, (old, old))
    assert collect.orphans([tmp_path]) == []
    os.utime(work / "content" / "x", (old, old))
    assert [o.path for o in collect.orphans([tmp_path])] == [work]


def test_a_builder_that_lives_here_keeps_its_work_however_old(tmp_path: Path) -> None:
    child = start('hpc_begin "$1"; mkdir "$WORK"; echo ready; sleep 60', tmp_path / "env")
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    assert found(tmp_path) == []
    kill_group(child)
    child.communicate(timeout=30)
    assert len(found(tmp_path)) == 1


def test_a_builder_of_another_host_is_judged_by_its_age(tmp_path: Path) -> None:
    name = begun(tmp_path)
    other = f".hpc-env.elsewhere.{os.getpid()}.00000000"
    (tmp_path / name).rename(tmp_path / other)
    assert [o.path.name for o in found(tmp_path)] == [other]


def test_what_is_published_between_finding_and_removing_stays(tmp_path: Path) -> None:
    name = begun(tmp_path)
    (orphan,) = found(tmp_path)
    (tmp_path / "env").symlink_to(f"{name}/content")
    assert not collect.remove(orphan)
    assert (tmp_path / "env" / "x").read_text() == "x\n"
    assert found(tmp_path) == []


def test_two_collectors_do_not_disturb_each_other(tmp_path: Path) -> None:
    begun(tmp_path)
    (first,), (second,) = found(tmp_path), found(tmp_path)
    assert collect.remove(first)
    assert not collect.remove(second)


def test_a_removal_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    name = begun(tmp_path)
    (tmp_path / name).rename(tmp_path / f".gone-{name.lstrip('.')}")
    (orphan,) = found(tmp_path)
    assert collect.remove(orphan)
    assert left(tmp_path) == []


def test_half_written_run_directories_are_orphans_too(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "demo", "4f1c9a2e", {"plan.json": ""})
    (tmp_path / "demo" / f".new-{'0' * 32}" / "steps").mkdir(parents=True)
    (orphan,) = found(tmp_path)
    assert orphan.path.name == f".new-{'0' * 32}"
    assert collect.remove(orphan)
    assert [p.name for p in (tmp_path / "demo").iterdir()] == ["1-4f1c9a2e"]


def test_links_to_other_places_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    begun(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to(tmp_path / "a")
    assert found(tmp_path / "b") == []
    assert found(tmp_path / "missing") == []
