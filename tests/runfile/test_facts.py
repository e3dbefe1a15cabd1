"""A cluster from its file, the site's and the user's; policy that cannot be loosened."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.duration import Duration
from hpctrain.runfile.facts import installed_site_file, load_cluster, load_facts, site_file
from hpctrain.runfile.layers.settings import Settings, read_settings
from tests.runfile.conftest import DATA, Project


def broken(folder: Path, old: str, new: str) -> Sequence[Problem]:
    """The problems of the cluster with one text replaced."""
    text = (DATA / "cluster.toml").read_text()
    assert old in text
    (folder / "cluster.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_cluster(folder)
    return caught.value.problems


def test_folder_and_file_are_the_same() -> None:
    cluster = load_cluster(DATA)
    assert cluster == load_cluster(DATA / "cluster.toml")
    assert [queue.max_time for queue in cluster.queue] == [Duration(7200), Duration(21600), Duration(7200)]
    assert [variable.name for variable in cluster.network.var] == [
        "FI_MR_CACHE_MONITOR",
        "NCCL_NET_GDR_LEVEL",
    ]
    assert cluster.defaults["train"] == {"use": "trl"}


@pytest.mark.parametrize(
    ("old", "new", "code", "message", "line"),
    [
        ('checked = "2026-07-22"', 'checked = "2026-02-30"', "wrong-value", "a day such as", 12),
        ('checked = "2026-07-22"', "checked = 2026-07-22", "wrong-type", "2026-07-22, a date; a string", 12),
        ('source = "guide"\ngpu ', 'source = "giude"\ngpu ', "unknown-name", 'no source "giude"', 21),
        (
            'nodes = "many"\n',
            'nodes = "many"\nsource2 = "x"\n',
            "unknown-key",
            'unknown key "source2"',
            99,
        ),
        ('nodes = "many"', 'nodes = "few"', "wrong-value", 'nodes is "few"; all, many or one', 98),
        ('provides = ["network"]', 'provides = ["net"]', "wrong-value", 'provides[0] is "net"', 34),
        ('name = "compute"', 'name = "login"', "duplicate-key", '"login" is the name of two places', 39),
        ("gpus = 8\n\n[[queue]]", 'queue = "bacth"\n\n[[queue]]', "unknown-name", 'no queue "bacth"', 42),
        ('max_time = "6h"', "max_time = 360", "wrong-type", "max_time is 360", 58),
        ('proof = "NET/OFI"', 'proof = "NET/(OFI"', "wrong-value", "which is not a regular expression", 85),
        ('title = "Frontier"\n', "", "missing-key", "title is missing", 1),
        ('name = "NCCL_NET_GDR_LEVEL"', 'name = "NCCL NET"', "name", '"NCCL NET" is not the name of', 94),
        ('[network]\nsource = "readme"\n', "[network]\n", "missing-key", "source is missing", 82),
        ('forbids = ["chain"]', 'forbids = ["chains"]', "wrong-value", 'forbids[0] is "chains"', 65),
        ("[policy]\n", '[policy]\nproject = "m[0-9]+"\n', "wrong-value", "one group is needed", 106),
        ("[policy]\n", '[policy]\nproject = "(m"\n', "wrong-value", "not a regular expression", 106),
        ('name = "login"\n', 'name = "login"\naccount = "{user}"\n', "wrong-value", "{user} is none of", 33),
    ],
)
def test_mistakes(old: str, new: str, code: str, message: str, line: int, tmp_path: Path) -> None:
    (problem,) = broken(tmp_path, old, new)
    assert problem.code == code
    assert message in problem.message
    assert problem.span is not None
    assert problem.span.line == line


def test_row_is_named_in_the_key_path(tmp_path: Path) -> None:
    (problem,) = broken(tmp_path, 'max_time = "6h"', "max_time = 360")
    assert problem.where == "queue.batch[1].max_time"


def test_rows_without_names_are_found_too(tmp_path: Path) -> None:
    problems = broken(tmp_path, 'name = "login"\n', "")
    assert [(p.code, p.where) for p in problems] == [("missing-key", "place[0].name")]


def test_site_row_replaces_the_rows_of_its_name(project: Project) -> None:
    project.site('[[queue]]\nname = "batch"\nsource = "guide"\nmax_time = "1h"\n')
    cluster = project.load()[1].cluster
    assert [(queue.name, queue.max_time) for queue in cluster.queue] == [
        ("batch", Duration(3600)),
        ("debug", Duration(7200)),
    ]


def test_gpus_that_the_scheduler_chooses_have_no_order(tmp_path: Path) -> None:
    text = '[launch]\nvisible = "one"\ngpu_order = "reversed"\n'
    (problem,) = broken(tmp_path, "[launch]\n", text)
    assert problem.message.startswith('gpu_order is "reversed", and visible = "one" lets the scheduler')
    assert problem.span is not None
    assert problem.span.text == 'gpu_order = "reversed"'


def test_a_place_that_may_write_is_one_of_the_clusters(tmp_path: Path) -> None:
    (problem,) = broken(tmp_path, "[storage.assets]\n", '[storage.assets]\nwritable = ["logni"]\n')
    assert (problem.message, problem.where) == ('no place "logni"', "storage.assets.writable[0]")


def test_a_row_of_the_site_may_stand_in_front(project: Project) -> None:
    project.site(
        '[[place]]\nname = "cpu"\nsource = "guide"\nprovides = ["network"]\nbefore = "login"\n'
        '[[queue]]\nname = "first"\nsource = "guide"\nbefore = "batch"\n'
        '[[queue]]\nname = "last"\nsource = "guide"\n'
    )
    cluster = project.load()[1].cluster
    assert [place.name for place in cluster.place] == ["cpu", "login", "compute"]
    assert [queue.name for queue in cluster.queue] == ["first", "batch", "batch", "debug", "last"]


def test_a_row_in_front_of_nothing_is_told_with_its_line(project: Project) -> None:
    project.site(
        '[[place]]\nname = "cpu"\nsource = "guide"\nprovides = ["network"]\nbefore = "logni"\n'
        '[[queue]]\nname = "first"\nsource = "guide"\nbefore = "bacth"\n'
    )
    problems = project.problems()
    assert [(p.message, p.span and p.span.line) for p in problems] == [
        ('no place "logni"', 5),
        ('no queue "bacth"', 9),
    ]


def test_site_file_of_another_cluster(project: Project) -> None:
    project.site('name = "lumi"\n')
    (problem,) = project.problems()
    assert problem.message == "these are facts of lumi; the cluster is frontier"


def test_settings_move_a_role_and_change_facts(project: Project) -> None:
    project.settings('[cluster.frontier]\nassets = "/big"\n[cluster.frontier.hardware]\nnodes = 4\n')
    _, facts = project.load()
    assert facts.cluster.storage["assets"].path == "/big"
    assert facts.cluster.storage["assets"].purge_days == 90
    assert facts.cluster.hardware.nodes == 4
    (row,) = [fact for fact in facts.rows() if fact.name == "storage.assets.path"]
    assert row.origin.label == "settings.toml:2"


def test_unknown_role_points_into_the_settings(project: Project) -> None:
    project.settings('[cluster.frontier]\nassests = "/big"\n')
    (problem,) = project.problems()
    assert (problem.message, problem.where) == ('no storage role "assests"', "storage.assests")
    assert problem.hint == "assets"
    assert problem.span is not None
    assert problem.span.line == 2


def test_facts_with_layers(project: Project) -> None:
    project.site("[policy]\npoll_seconds = 120\n")
    rows = {fact.name: fact for fact in project.load()[1].rows()}
    said = {name: (fact.value, fact.origin.label, fact.checked) for name, fact in rows.items()}
    assert said["queue.batch[0].max_time"] == ("2h", "cluster.toml:50", "2026-07-22")
    assert said["policy.poll_seconds"] == (120, "frontier.toml:2", "2026-07-22")
    assert said["network.var.FI_MR_CACHE_MONITOR.value"] == ("kdreg2", "cluster.toml:89", "2026-07-21")


POLICY = "[policy]\npoll_seconds = 120\nmax_gpus = 256\n"


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("poll_seconds", "10", "floor is 120 (HOME/frontier.toml:2)"),
        ("max_gpus", "512", "cap is 256 (HOME/frontier.toml:3)"),
        ("account", '"none"', 'rule is "required" (DATA/cluster.toml:108)'),
    ],
)
@pytest.mark.parametrize("where", ["run", "on", "settings", "set"])
def test_policy_cannot_be_loosened(project: Project, where: str, key: str, value: str, rule: str) -> None:
    project.site(POLICY)
    sets = []
    if where == "run":
        project.replace("[resources]\n", f"[policy]\n{key} = {value}\n[resources]\n")
    elif where == "on":
        project.replace("[on.frontier.ch", f"[on.frontier.policy]\n{key} = {value}\n[on.frontier.ch")
    elif where == "settings":
        project.settings(f"[cluster.frontier.policy]\n{key} = {value}\n")
    else:
        sets = [f"policy.{key}={value}"]
    (problem,) = project.problems(*sets)
    rule = rule.replace("HOME", str(project.home)).replace("DATA", str(DATA))
    assert (problem.code, problem.where) == ("policy", f"policy.{key}")
    assert problem.message == f"policy.{key} = {value}: the site's {rule}"
    assert problem.span is not None
    assert problem.span.line == {"run": 5, "on": 39, "settings": 2, "set": 0}[where]


def test_policy_can_be_tightened(project: Project) -> None:
    project.site(POLICY)
    project.replace("[resources]\n", "[policy]\npoll_seconds = 300\nmax_gpus = 8\n[resources]\n")
    policy = project.load()[1].cluster.policy
    assert (policy.poll_seconds, policy.max_gpus) == (300, 8)


def test_a_site_file_that_a_variable_names_does_not_loosen_the_installed_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its policy stays; all else that it says has given way to the file that is named."""
    folder = tmp_path / "etc"
    folder.mkdir()
    monkeypatch.setattr("hpctrain.runfile.facts.SITE_FOLDER", folder)
    installed = folder / "frontier.toml"
    source = '[[source]]\nid = "ours"\ntitle = "us"\nurl = "https://us"\nchecked = "2026-11-01"\n'
    installed.write_text(f'{source}{POLICY}source = "ours"\n[hardware]\nnodes = 7\n')
    assert installed_site_file("lumi") is None
    assert site_file("frontier", {}) == installed_site_file("frontier") == installed

    def policy(text: str) -> Cluster:
        project.site(text)
        return load_facts(DATA, site=project.home / "frontier.toml", installed=installed).cluster

    kept = policy("[policy]\npoll_seconds = 300\n")
    assert (kept.policy.poll_seconds, kept.policy.max_gpus) == (300, 256)
    assert kept.hardware.nodes != 7
    assert load_facts(DATA, installed=installed).cluster.policy.max_gpus == 256
    with pytest.raises(ConfigError, match=r"policy\.max_gpus = 512: the site's cap is 256") as caught:
        policy("[policy]\nmax_gpus = 512\n")
    assert [problem.code for problem in caught.value.problems] == ["policy"]


def test_policy_of_the_wrong_type_is_one_problem(project: Project) -> None:
    (problem,) = project.problems("policy.poll_seconds=often")
    assert problem.message == 'poll_seconds is "often", a string; a whole number is needed'


def test_site_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "frontier.toml"
    assert site_file("frontier", {"HPCTRAIN_SITE": str(tmp_path)}) is None
    file.write_text("")
    assert site_file("frontier", {"HPCTRAIN_SITE": str(tmp_path)}) == file
    assert site_file("lumi", {"HPCTRAIN_SITE": str(file)}) == file
    gone = site_file("frontier", {"HPCTRAIN_SITE": str(tmp_path / "gone.toml")})
    with pytest.raises(ConfigError, match="does not exist"):
        load_facts(DATA, site=gone)


def test_settings_file_is_found(tmp_path: Path) -> None:
    assert read_settings({"HOME": str(tmp_path)}) == Settings()
    assert read_settings({"HOME": str(tmp_path), "HPCTRAIN_SETTINGS": "/dev/null"}) == Settings()
    with pytest.raises(ConfigError, match="does not exist"):
        read_settings({"HPCTRAIN_SETTINGS": str(tmp_path / "gone.toml")})
    folder = tmp_path / "xdg/hpctrain"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text('account = "A"\n[secrets]\nwandb = { file = "~/.wandb" }\n')
    settings = read_settings({"XDG_CONFIG_HOME": str(tmp_path / "xdg")})
    assert (settings.account, settings.secrets) == ("A", {"wandb": {"file": "~/.wandb"}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('acount = "A"', 'unknown key "acount"'),
        ("account = 1", "account is 1, a bare number; a string is needed"),
        ('[ui]\ncolor = "pink"', 'color is "pink"; auto, always or never is needed'),
        ("[cluster]\nfrontier = 1", "frontier is 1, a bare number; a table is needed"),
        ('[cluster."../x"]\naccount = "A"', '"../x" is not a name'),
    ],
)
def test_settings_are_strict(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_settings({"HPCTRAIN_SETTINGS": str(path)})
    (problem,) = caught.value.problems
    assert problem.message == message
    assert problem.span is not None


def test_a_copied_cluster_is_the_same(tmp_path: Path) -> None:
    shutil.copy(DATA / "cluster.toml", tmp_path)
    assert load_cluster(tmp_path) == load_cluster(DATA)


def test_a_field_that_nobody_fills_in_is_refused(tmp_path: Path) -> None:
    """`{acount}` would stay in the path, and be made."""
    source = Path(__file__).parents[2] / "hpc_olivia/hpc_olivia/cluster.toml"
    text = source.read_text().replace("/projects/{account}/hpctrain", "/projects/{acount}/hpctrain", 1)
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_facts(tmp_path)
    (problem,) = caught.value.problems
    assert "{acount} is none of {user}, {account}" in problem.message
    assert "{account}" in problem.hint


@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("/scratch/<project>/runs", "what is in <> is yours to fill in", ""),
        ("/scratch/<your group>/runs", "what is in <> is yours to fill in", ""),
        ("$HOME/runs", "a variable is written ${NAME}", 'path = "${HOME}/runs"'),
        ("/p/$A_1/$b", "a variable is written ${NAME}", 'path = "/p/${A_1}/${b}"'),
        ("/scratch/a:b/runs", "cut at a colon", ""),
    ],
)
def test_a_root_that_no_shell_will_read(tmp_path: Path, path: str, said: str, hint: str) -> None:
    source = Path(__file__).parents[2] / "hpc_olivia/hpc_olivia/cluster.toml"
    text = source.read_text().replace("/cluster/home/{user}/.local/state/hpctrain", path, 1)
    assert path in text
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_facts(tmp_path)
    (problem,) = caught.value.problems
    assert said in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize("owner", ["*", "@*", "a b", "@domain users", "", "@", "a@b", "$USER", "x;y", "[a]"])
def test_an_owner_is_one_name(tmp_path: Path, owner: str) -> None:
    """Jobs have the owners with spaces between them; a pattern would be filled in from a folder's files."""
    source = Path(__file__).parents[2] / "hpc_olivia/hpc_olivia/cluster.toml"
    text = source.read_text().replace('owners = ["@{account}"]', f'owners = ["@{{account}}", "{owner}"]', 1)
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(
        ConfigError, match="an owner is one name of a user, or @ and that of a group"
    ) as caught:
        load_facts(tmp_path)
    assert "owners[1]" in caught.value.problems[0].message
