"""From a folder with a run file to a RunSpec, and each mistake with its place."""

from __future__ import annotations

import pytest

from hpctrain.model.duration import Duration
from hpctrain.runfile.layers.source import read_run
from tests.runfile.conftest import Conda, Project, Trl, spot


def test_typical(project: Project) -> None:
    loaded, _ = project.load()
    run = loaded.run
    assert (run.name, run.cluster) == ("guanaco-lora", "frontier")
    assert run.resources.time == Duration(5400)
    assert run.checkpoint.every == Duration(600)  # [on.frontier]
    assert run.environment.use == "conda"  # cluster.toml [defaults]
    assert run.environment.options == Conda(channel="conda-forge")
    assert run.train.options == Trl(method="lora", config="trl.yaml")
    assert [package.name for package in run.environment.packages] == ["trl", "peft", ""]
    assert set(run.inputs) == {"requirements.txt", "trl.yaml"}
    assert run.texts["trl.yaml"] == "lr: 1\n"
    assert len(run.assets["dataset"].sha256) == 64
    assert loaded.files["mylib"] == project.path / "mylib"


def test_origins_and_their_lines(project: Project) -> None:
    project.settings('account = "GEN150"\n')
    loaded, _ = project.load("checkpoint.keep=5")
    said = {key: origin.label for key, origin in loaded.origins.items()}
    assert said["resources.time"] == "run.toml:6"
    assert said["checkpoint.every"] == "run.toml:39"
    assert said["environment.use"] == "cluster.toml:112"
    assert said["resources.account"] == "settings.toml:1"
    assert said["checkpoint.keep"] == "--set checkpoint.keep=5"
    assert "resources.nodes" in said


def test_layers_in_order(project: Project) -> None:
    def keep() -> int | None:
        return project.load()[0].run.checkpoint.keep

    assert keep() is None
    project.site("[defaults.checkpoint]\nkeep = 4\n")
    assert keep() == 4
    project.settings("[run.checkpoint]\nkeep = 5\n")
    assert keep() == 5
    project.replace('export = "hf"', 'export = "hf"\nkeep = 6')
    assert keep() == 6
    project.replace('every = "10m"', 'every = "10m"\nkeep = 7')
    assert keep() == 7
    assert project.load("checkpoint.keep=8")[0].run.checkpoint.keep == 8


def test_account_of_the_cluster_wins_over_the_general_one(project: Project) -> None:
    project.settings('account = "A"\n')
    assert project.load()[0].run.resources.account == "A"
    project.settings('account = "A"\n[cluster.frontier]\naccount = "B"\n')
    assert project.load()[0].run.resources.account == "B"
    assert project.load("resources.account=C")[0].run.resources.account == "C"


def test_a_higher_layer_chooses_among_alternatives(project: Project) -> None:
    run = project.load("resources.gpus=16")[0].run
    assert (run.resources.nodes, run.resources.gpus) == (None, 16)
    run = project.load('assets.model={path="/big/llama"}')[0].run
    assert (run.assets["model"].hub, run.assets["model"].path) == ("", "/big/llama")


@pytest.mark.parametrize(
    ("old", "new", "code", "message", "where", "place", "hint"),
    [
        (
            "packages = [",
            "pakages = [",
            "unknown-key",
            'unknown key "pakages"',
            "environment.pakages",
            "run.toml:10:1 pakages",
            "packages",
        ),
        (
            'time  = "1:30:00"',
            "time = 90",
            "wrong-type",
            "time is 90, a bare number; a duration is needed",
            "resources.time",
            "run.toml:6:8 90",
            'time = "90m"      also "1:30:00", "2d"',
        ),
        (
            'time  = "1:30:00"',
            'time = "25:00:99"',
            "wrong-value",
            'time is "25:00:99"; a duration is needed',
            "resources.time",
            'run.toml:6:8 "25:00:99"',
            'time = "90m"      also "1:30:00", "2d"',
        ),
        (
            '"guanaco-lora"',
            '"../$(id)"',
            "name",
            '"../$(id)" is not a name',
            "name",
            'run.toml:1:11 "../$(id)"',
            "",
        ),
        (
            "model   =",
            '"../x"   =',
            "name",
            '"../x" is not a name',
            'assets."../x"',
            'run.toml:18:1 "../x"',
            "",
        ),
        (
            "WANDB_MODE",
            '"A B"',
            "name",
            '"A B" is not the name of an environment variable',
            'env."A B"',
            'run.toml:33:1 "A B"',
            "",
        ),
        (
            "[environment.venv]",
            "[environment.vnev]",
            "unknown-key",
            'unknown key "vnev"',
            "environment.vnev",
            "run.toml:14:14 vnev",
            "venv",
        ),
        (
            'method = "lora"',
            'metod = "lora"',
            "unknown-key",
            'unknown key "metod"',
            "train.trl.metod",
            "run.toml:25:1 metod",
            "method",
        ),
        (
            'method = "lora"',
            'method = "lara"',
            "wrong-value",
            'method is "lara"; full or lora is needed',
            "train.trl.method",
            'run.toml:25:10 "lara"',
            'method = "lora"',
        ),
        (
            '"mylib"',
            '"my lib\'s"',
            "no-file",
            'path is "my lib\'s", which does not exist',
            "environment.packages[2].path",
            'run.toml:10:53 "my lib\'s"',
            "",
        ),
        (
            '"trl.yaml"',
            '"."',
            "is-folder",
            'config is ".", a folder; a file is needed',
            "train.trl.config",
            'run.toml:26:10 "."',
            "",
        ),
        (
            "nodes = 2",
            "nodes = 2\ngpus = 2",
            "alternatives",
            "nodes and gpus are both set; keep one",
            "resources.gpus",
            "run.toml:6:1 gpus",
            "",
        ),
        (
            '{ hub = "meta-llama/Meta-Llama-3-8B" }',
            '{ split = "x" }',
            "missing-key",
            "hub, url, git, path, command or use is missing",
            "assets.model",
            "run.toml:18:1 model",
            "",
        ),
        (
            '{ hub = "meta-llama/Meta-Llama-3-8B" }',
            '{ git = "--upload-pack=x" }',
            "wrong-value",
            'git is "--upload-pack=x", which looks like an option of a command',
            "assets.model.git",
            'run.toml:18:19 "--upload-pack=x"',
            "",
        ),
        (
            'name    = "guanaco-lora"\n',
            "",
            "missing-key",
            "name is missing",
            "name",
            "run.toml:1:1 ",
            "",
        ),
    ],
)
def test_mistakes(
    project: Project,
    old: str,
    new: str,
    code: str,
    message: str,
    where: str,
    place: str,
    hint: str,
) -> None:
    project.replace(old, new)
    (problem,) = project.problems()
    assert (problem.code, problem.message, problem.where) == (code, message, where)
    assert spot(problem).startswith(place)
    assert problem.hint == hint


def test_all_mistakes_at_once_in_the_order_of_the_file(project: Project) -> None:
    project.replace("nodes = 2", 'nodes = "2"')
    project.replace('python   = "3.10"', "python   = 3.10")
    project.replace('method = "lora"', "method = 3")
    project.replace('WANDB_MODE = "offline"', "WANDB_MODE = 1")
    problems = project.problems("checkpoint.keep=x")
    assert [problem.where for problem in problems] == [
        "resources.nodes",
        "environment.python",
        "train.trl.method",
        "env.WANDB_MODE",
        "checkpoint.keep",
    ]


def test_mistake_in_settings_points_there(project: Project) -> None:
    project.settings("\n[run.checkpoint]\nkepe = 5\n")
    (problem,) = project.problems()
    assert spot(problem) == "settings.toml:3:1 kepe"
    assert problem.where == "checkpoint.kepe"


def test_mistake_in_an_overlay_points_there(project: Project) -> None:
    project.replace('every = "10m"', "every = 10")
    (problem,) = project.problems()
    assert spot(problem) == "run.toml:39:9 10"


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("resources.time=90", "time is 90, a bare number; a duration is needed", "resources.time"),
        ("rubbish", '"rubbish" is not KEY=VALUE', ""),
        ("=3", '"=3" is not KEY=VALUE', ""),
        ("a b=3", '"a b=3" is not KEY=VALUE', ""),
        ("[a]=3", '"[a]=3" is not KEY=VALUE', ""),
        ("a=1\nb=3", "a holds a newline", "a"),
        ("name=a\x00b", "name holds the NUL character", "name"),
        ("resources.nods=3", 'unknown key "nods"', "resources.nods"),
    ],
)
def test_set(project: Project, text: str, message: str, where: str) -> None:
    (problem,) = project.problems(text)
    assert (problem.message, problem.where) == (message, where)
    assert problem.span is not None
    assert (problem.span.file, problem.span.line) == (f"--set {text}", 0)


@pytest.mark.parametrize("text", ["resources.time=2h", 'resources.time="2h"', "resources.time = 2h"])
def test_set_takes_toml_or_a_string(project: Project, text: str) -> None:
    assert project.load(text)[0].run.resources.time == Duration(7200)


def test_set_of_several_kinds(project: Project) -> None:
    run = project.load('environment.packages=["x"]', "env.A=b=c", "env.B=''")[0].run
    assert [package.requirement for package in run.environment.packages] == ["x"]
    assert run.env == {"WANDB_MODE": "offline", "A": "b=c", "B": ""}


def test_on_wins_over_the_file(project: Project) -> None:
    loaded, _ = project.load(on="isambard")
    assert loaded.run.cluster == "isambard"
    assert (loaded.run.resources.nodes, loaded.run.resources.gpus) == (None, 8)
    assert loaded.run.checkpoint.every == Duration(1800)
    assert loaded.origins["cluster"].label == "--on isambard"


@pytest.mark.parametrize("name", ["../x", "$(id)", "a/b", "", "-x", "a..b"])
def test_the_cluster_is_a_name(project: Project, name: str) -> None:
    project.replace('cluster = "frontier"', f'cluster = "{name}"')
    raw = None
    if not name:
        raw = read_run(environ=project.environ, start=project.path)
        assert raw.cluster == ""
        assert raw.on_cluster("frontier").tiers()[-1].data == {"cluster": "frontier"}
        return
    (problem,) = project.problems()
    assert problem.message == f'"{name}" is not a name'
    assert spot(problem) == f'run.toml:2:11 "{name}"'


def test_overlays_are_tables_with_names(project: Project) -> None:
    project.replace("[on.isambard.resources]\ngpus = 8", '[on]\nisambard = 8\n"a b" = {}')
    project.replace("[on.frontier.checkpoint]", "[on.frontier]\n[on.frontier.checkpoint]")
    first, second = project.problems()
    assert first.message == "isambard is 8, a bare number; a table is needed"
    assert second.message == '"a b" is not a name'


def test_empty_file(project: Project) -> None:
    project.write("# nothing\n")
    (problem,) = project.problems()
    assert (problem.code, problem.message) == ("empty-file", "run.toml is empty")


def test_options_of_a_technology_without_any(project: Project) -> None:
    project.replace('[train]\nuse = "trl"', '[train]\nuse = "command"\n[train.command]\nx = 1')
    (problem,) = project.problems()
    assert (problem.where, problem.notes) == ("train.command.x", ("command has no options",))


def test_technology_as_a_bare_key(project: Project) -> None:
    project.replace("[environment.venv]\nsystem = true", "venv = true")
    (problem,) = project.problems()
    assert problem.message == "venv is the name of a technology; its options are a table"
    assert problem.hint == "[environment.venv]"


def test_a_variable_may_hold_lines_and_what_a_shell_would_replace(project: Project) -> None:
    """The second is told, and stops nothing."""
    project.replace("[env]", """[env]\nTEXT = "a\\n\\tb"\nCACHE = "$HOME/cache\"""")
    with (project.path / "run.toml").open("a") as file:
        file.write('[on.frontier.env]\nMORE = """\nc\n"""\n[on.alps.env]\nTHERE = "~/there"\n')
    loaded, _ = project.load(on="frontier")
    assert {**loaded.run.env, "WANDB_MODE": ""} == {
        "WANDB_MODE": "",
        "TEXT": "a\n\tb",
        "CACHE": "$HOME/cache",
        "MORE": "c\n",
    }
    literal = [p for p in loaded.problems if p.code == "env-literal"]
    assert not any(p.fatal for p in literal)
    assert [spot(p).partition(" ")[2] for p in literal] == ['"$HOME/cache"', '"~/there"']
