"""The lock of a stranger's run, which somebody plans by its name: it says no more than a run file may."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import ConfigError
from tests.run.users import GROUP, MALLORY, USER, python_as, with_plugins
from tests.run.users import project as project

RUN = """\
name = "hello"
cluster = "local"
[environment]
use = "ready"
[environment.ready]
prefix = "/usr"
[train]
use = "command"
[train.command]
argv = ["true"]
"""
HOOKS = "HPCTRAIN_API = 1\nimport pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
TOKEN = "hf_abcdefghijklmnopqrstuvwx"
REFUSED = {
    "an account": ('[replay.set]\naccount = "hers"\n', "unknown-key"),
    "an account of settings": ('[replay.settings]\naccount = "hers"\n', "unknown-key"),
    "a file that is read as a token": (
        '[replay.settings.secrets]\nmine = { file = "~/.ssh/id_rsa" }\n',
        "wrong-type",
    ),
    "a policy that is loosened": ("[replay.set.policy]\npoll_seconds = 0\n", "policy"),
    "owners of files": ('[replay.set.cluster.local.storage.env]\nowners = ["her"]\n', "wrong-type"),
    "a token": (f'[replay.set.env]\nHF_TOKEN = "{TOKEN}"\n', "secret-in-env"),
    "a login in an address": ('[replay.set.code]\ngit = "https://u:secretpw@h/x"\n', "secret-in-url"),
    "whom mail goes to": ('[replay.set]\nmail = "her@example.org"\n', "unknown-key"),
    "a folder that no path is": ('[replay]\nfolder = "a\\u0000b"\n', "control-character"),
    "escape codes": ('[replay]\nplugins = ["\\u001b]0;x"]\n', "control-character"),
    "a digest that is a number": ("[replay]\ndigest = 3\n", "wrong-type"),
    "a table in the table": ('[replay.set.replay.set]\nname = "x"\n', "unknown-key"),
    "a table that nobody knows": ('[replay.other]\nx = "x"\n', "unknown-key"),
}
WITHOUT_EFFECT = {
    "a folder of settings": '[replay.settings.cluster.local]\nenv = "/tmp/x"\n',
    "owners in settings": '[replay.settings.cluster.local.storage.env]\nowners = ["her"]\n',
    "a folder elsewhere": '[replay]\nfolder = "/etc"\n',
    "files elsewhere": '[replay.files]\n"../../../../etc/shadow" = "x"\n',
}


def planned(folder: Path, table: str) -> Session:
    (folder / "run.lock.toml").write_text(f"{RUN}\n{table}")
    session = Session(folder / "run.lock.toml", environ={"HOME": str(folder), "USER": "me"})
    session.plan()
    return session


@pytest.mark.parametrize("attack", REFUSED)
def test_what_a_lock_may_not_say_is_refused(tmp_path: Path, attack: str) -> None:
    table, code = REFUSED[attack]
    with pytest.raises(ConfigError) as caught:
        planned(tmp_path, table)
    assert code in {problem.code for problem in caught.value.problems}
    assert not [word for word in (TOKEN, "secretpw") if word in str(caught.value)]


@pytest.mark.parametrize("attack", WITHOUT_EFFECT)
def test_what_is_nobody_s_to_say_has_no_effect(tmp_path: Path, attack: str) -> None:
    plain = planned(tmp_path, "")
    session = planned(tmp_path, WITHOUT_EFFECT[attack])
    assert session.cluster.storage == plain.cluster.storage
    assert session.binding.roots == plain.binding.roots
    assert session.plan().digest == plain.plan().digest


PLAN = """
import sys
from hpctrain import Session
from hpctrain.errors import ConfigError
try:
    Session(sys.argv[1], environ={"HOME": sys.argv[2], "USER": "me"}).plan()
    print("planned")
except ConfigError as error:
    print(*sorted({problem.code for problem in error.problems}))
"""


@pytest.mark.parametrize("folder", ["her", "../project/her", "own/link", "own"])
def test_its_folder_does_not_lead_to_hooks_of_another_user(project: Path, folder: str) -> None:
    """She sends a lock, the user keeps it in a file of his own, and its table names a folder of hers.

    Of his own folder the hooks run, so it is not something else that stops hers.
    """
    with_plugins(project)
    for name in ("her", "own"):
        (project / name).mkdir()
    (project / "own/link").symlink_to("../her")
    (project / folder / "hooks.py").write_text(HOOKS)
    replay = f'[replay]\nfolder = "{project / folder}"\n[replay.files]\n"hooks.py" = "0"\n'
    text = f'{RUN}\n{replay}[replay.set.hooks]\nfile = "hooks.py"\n'
    (project / "own/run.lock.toml").write_text(text)
    for path in project.rglob("*"):
        os.chown(path, MALLORY if "her" in path.parts else USER, GROUP, follow_symlinks=False)
    done = python_as(USER, PLAN, project, str(project / "own/run.lock.toml"), str(project))
    assert done.returncode == 0, done.stderr
    is_his = folder == "own"
    assert not (project / "her/ran").exists(), done.stdout
    assert (done.stdout.strip() == "not-trusted") is not is_his, done.stdout
    assert (project / folder / "ran").exists() is is_his
    assert not (project / "her/ran").exists()
