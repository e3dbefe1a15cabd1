"""The lock of a stranger's run, which somebody plans by its name: it says no more than a run file may."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import ConfigError
from tests.run.users import GROUP, MALLORY, USER
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


@pytest.mark.parametrize("folder", ["her", "../project/her", "own/link"])
def test_its_folder_does_not_lead_to_hooks_of_another_user(
    project: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """She sends a lock, the user keeps it in a file of his own, and its table names a folder of hers.

    Only the owners decide here, and he may not be let into the folder of our facts: root takes his number.
    """
    for name in ("her", "own"):
        (project / name).mkdir()
    (project / "her/hooks.py").write_text(HOOKS)
    (project / "own/link").symlink_to("../her")
    replay = f'[replay]\nfolder = "{project / folder}"\n[replay.files]\n"hooks.py" = "0"\n'
    text = f'{RUN}\n{replay}[replay.set.hooks]\nfile = "hooks.py"\n'
    (project / "own/run.lock.toml").write_text(text)
    for path in project.rglob("*"):
        os.chown(path, MALLORY if "her" in path.parts else USER, GROUP, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    with pytest.raises(ConfigError) as caught:
        Session(project / "own/run.lock.toml", environ={"HOME": str(project), "USER": "me"}).plan()
    assert {problem.code for problem in caught.value.problems} == {"not-trusted"}
    assert not (project / "her/ran").exists()
