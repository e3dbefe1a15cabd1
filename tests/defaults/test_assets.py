"""Assets brought by the steps that core plans: rendered, run, published."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain.defaults import pins
from hpctrain.errors import ConfigError, NotReachable, StepFailed
from hpctrain.model.run import Asset, Code, RunSpec
from hpctrain.model.step import CONFIG, Need, Pin
from hpctrain.model.words import Loc, locs_in
from hpctrain.run.system.tools import Tools
from hpctrain_job.tree import digest
from tests.defaults.rig import World, cluster, plan
from tests.job.server import Server, status
from tests.job.test_hub import COMMIT, FILES, below, publish

GIT = {
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "PATH": os.environ["PATH"],
}


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    return World(tmp_path / "fs", tmp_path / "files", env={"no_proxy": "*"})


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=GIT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "train.py").write_text("print('one')\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    (folder / "train.py").write_text("print('two')\n")
    git(folder, "commit", "--quiet", "-am", "two")
    return folder


def run(**assets: Asset) -> RunSpec:
    return RunSpec(name="r", cluster="toy", assets=assets)


def locked(spec: RunSpec) -> tuple[Pin, ...]:
    return tuple(pins.pin(run=spec, cluster=cluster(), tools=Tools()))


def test_an_address_by_its_content(server: Server, world: World) -> None:
    body = b'{"text": "hei"}\n'
    server.files["/corpus.jsonl"] = body
    sha256 = hashlib.sha256(body).hexdigest()
    made = plan(run(data=Asset(url=f"{server.url}/corpus.jsonl", sha256=sha256)), cluster())
    world.execute(made)
    assert world.published(made, "data").read_bytes() == body
    assert world.published(made, "data").name.endswith(".jsonl")
    assert "not-pinned" not in {p.code for p in made.problems if "corpus" in p.message}


def test_other_content_is_not_published(server: Server, world: World) -> None:
    server.files["/x"] = b"something else"
    made = plan(run(data=Asset(url=f"{server.url}/x", sha256="0" * 64)), cluster())
    with pytest.raises(StepFailed):
        world.execute(made)
    assert not world.published(made, "data").exists()


def test_a_second_run_finds_what_is_there(server: Server, world: World) -> None:
    server.files["/x"] = b"x"
    made = plan(run(data=Asset(url=f"{server.url}/x")), cluster())
    world.execute(made)
    server.files.clear()
    directory = world.execute(made)
    assert "exists:" in directory.log("data").read_text()


def test_a_hub_snapshot_at_its_pin(server: Server, world: World, tmp_path: Path) -> None:
    publish(server, tmp_path)
    spec = run(model=Asset(hub="org/m"))
    made = plan(spec, cluster(), pins=(Pin("org/m@main", "hub", COMMIT),))
    there = World(world.folder, world.files, env={**world.env, "HF_ENDPOINT": server.url})
    there.execute(made)
    assert below(world.published(made, "model")) == {
        "config.json",
        "model.safetensors",
        "tokenizer/vocab.txt",
    }
    assert (world.published(made, "model") / "config.json").read_bytes() == FILES["config.json"]


@pytest.mark.parametrize(("rev", "expect"), [("", "two"), ("main", "two"), ("v1", "one")])
def test_git_at_a_branch_a_tag_or_the_head(repository: Path, world: World, rev: str, expect: str) -> None:
    spec = run(code=Asset(git=str(repository), rev=rev))
    made = plan(spec, cluster(), pins=locked(spec))
    world.execute(made)
    assert expect in (world.published(made, "code") / "train.py").read_text()


def test_the_key_is_the_commit_and_not_the_branch(repository: Path) -> None:
    by_branch, by_tag = (run(code=Asset(git=str(repository), rev=r)) for r in ("main", "v1"))
    full = run(code=Asset(git=str(repository), rev=git(repository, "rev-parse", "HEAD")))
    key = [plan(s, cluster(), pins=locked(s)).steps[0].step.makes.key for s in (by_branch, by_tag, full)]  # type: ignore[union-attr]
    assert key[0] == key[2] != key[1]


def test_a_revision_that_does_not_exist(repository: Path) -> None:
    with pytest.raises(ConfigError, match="has no branch or tag nope") as caught:
        locked(run(code=Asset(git=str(repository), rev="nope")))
    assert caught.value.problems[0].where == "assets.code.git"


def test_a_repository_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NotReachable, match="git cannot read"):
        locked(run(code=Asset(git=str(tmp_path / "nothing"))))


def test_a_private_repository_says_how_git_is_let_in(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real git, and a server that wants to know who asks; a host that is not there gets no such advice."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("HOME", "/nowhere")
    server.script = [status(401)]
    with pytest.raises(NotReachable) as caught:
        locked(run(code=Asset(git=f"{server.url}/me/private.git")))
    (problem,) = caught.value.problems
    host = server.url.partition("://")[2]
    assert problem.hint == (
        f'git = "git@{host}:me/private.git" with an ssh key, or a login for {host} in ~/.netrc (chmod 600)'
    )
    with pytest.raises(NotReachable) as caught:
        locked(run(code=Asset(git="http://127.0.0.1:9/me/private.git")))
    assert caught.value.problems[0].hint == ""


def test_revisions_of_the_hub(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(server, tmp_path, "org/d", "dataset")
    spec = run(dataset=Asset(hub="org/d"), fixed=Asset(hub="org/m", revision="b" * 40))
    with monkeypatch.context() as patch:
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("no_proxy", "*")
        assert Pin("datasets/org/d@main", "hub", COMMIT) in locked(spec)
        server.script = [status(403)]
        with pytest.raises(ConfigError, match="accept the licence") as caught:
            locked(spec)
    assert caught.value.problems[0].code == "gated"


def test_the_shape_of_a_model_is_locked_and_a_gated_one_told_at_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, tmp_path)
    address = f"/org/m/resolve/{COMMIT}/config.json"
    server.files[address] = b'{"model_type": "llama", "rope_scaling": {}, "hidden_size": 64}'
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("no_proxy", "*")
    for revision in ("", COMMIT):
        asset = Asset(hub="org/m", revision=revision)
        assert Pin("model", CONFIG, '{"hidden_size":64,"model_type":"llama"}') in locked(run(model=asset))
    server.files[address] = b"[1]"
    assert not [pin for pin in locked(run(model=Asset(hub="org/m"))) if pin.kind == CONFIG]
    server.script = [status(403)]
    with pytest.raises(ConfigError, match="accept the licence") as caught:
        locked(run(model=Asset(hub="org/m", revision=COMMIT)))
    assert (caught.value.problems[0].code, caught.value.problems[0].where) == ("gated", "assets.model.hub")


def test_a_relative_path_is_copied_by_content(world: World) -> None:
    (world.files / "corpus").mkdir()
    (world.files / "corpus/a.txt").write_text("a")
    asset = Asset(path="corpus", sha256=digest(world.files / "corpus"))
    made = plan(run(data=asset), cluster())
    world.execute(made)
    assert (world.published(made, "data") / "a.txt").read_text() == "a"


def test_what_changed_after_planning_is_refused(world: World) -> None:
    (world.files / "a.txt").write_text("a")
    made = plan(run(data=Asset(path="a.txt", sha256=digest(world.files / "a.txt"))), cluster())
    (world.files / "a.txt").write_text("b")
    with pytest.raises(StepFailed) as caught:
        world.execute(made)
    assert any("changed since the run was planned" in note for note in caught.value.problems[0].notes)


def test_an_absolute_path_is_used_where_it_lies() -> None:
    assert plan(run(data=Asset(path="/project/corpus")), cluster()).steps == ()


def test_a_command_sees_its_inputs_and_nothing_else(world: World) -> None:
    (world.files / "make.sh").write_text('ls > "$WORK"; cat "$HOME/x" "$1" >> "$WORK" || true\n')
    spec = RunSpec(
        name="r",
        cluster="toy",
        assets={"data": Asset(command=("bash", "make.sh", "it's $HOME"), inputs=("make.sh",))},
        inputs={"make.sh": digest(world.files / "make.sh")},
    )
    made = plan(spec, cluster())
    (step,) = made.steps
    assert step.step.needs == {Need.TARGET}
    assert step.step.inside
    there = World(world.folder, world.files, env={"PATH": os.environ["PATH"]})
    there.execute(made)
    assert world.published(made, "data").read_text() == "make.sh\n"


def test_the_key_of_a_command_follows_its_inputs() -> None:
    asset = Asset(command=("python", "make.py"), inputs=("make.py",))
    keys = {
        plan(RunSpec(name="r", cluster="toy", assets={"d": asset}, inputs={"make.py": h}), cluster())
        .steps[0]
        .step.makes.key  # type: ignore[union-attr]
        for h in ("a", "b")
    }
    assert len(keys) == 2


def test_a_token_is_given_only_where_the_run_asks() -> None:
    asset = {"model": Asset(hub="org/m", revision=COMMIT)}
    for secrets, expect in (((), set()), (("huggingface",), {"HF_TOKEN"})):
        spec = RunSpec(name="r", cluster="toy", assets=asset, secrets=secrets)
        env = plan(spec, cluster()).steps[0].step.layer.env
        assert {v.name for v in env} == expect


def test_downloads_wait_beside_what_they_become() -> None:
    made = plan(run(model=Asset(hub="org/m", revision=COMMIT)), cluster())
    step = made.steps[0].step
    assert step.makes is not None
    assert locs_in(step.commands) == [Loc("assets", f".partial/{step.makes.filename}")]


def test_own_code(repository: Path) -> None:
    spec = RunSpec(name="r", cluster="toy", code=Code(git=str(repository), rev="v1"))
    (planned,) = plan(spec, cluster(), pins=locked(spec)).steps
    assert planned.name == "code"
    assert planned.step.needs == {Need.NETWORK}
    assert git(repository, "rev-parse", "v1^{commit}") in planned.step.commands[1].argv  # type: ignore[union-attr]
    copied = RunSpec(name="r", cluster="toy", code=Code(path="src", sha256="c" * 64))
    (planned,) = plan(copied, cluster()).steps
    assert planned.step.needs == frozenset()
    assert plan(RunSpec(name="r", cluster="toy"), cluster()).steps == ()
