"""Each of the six ways a plugin can be broken names it, its distribution and version, and hurts no other."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, PluginError
from hpctrain.hooks.load import find, load, load_file
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import installed, published_clusters
from tests.clusters import HOMES
from tests.hooks.dists import GOOD, cluster
from tests.patience import within

GIVEN = {"run": None, "cluster": None, "launch": None}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def add(site: Path, name: str) -> Hooks:
    """Register the cluster of this name alone."""
    hooks = Hooks()
    entry = find("clusters", name, installed((str(site),)))
    hooks.add(entry, load(entry))
    return hooks


HOOK = "from hpctrain import hookimpl\n" + GOOD + "@hookimpl\n"
BROKEN = {
    "import": ("import nothing_like_this\n", "cannot be imported: ModuleNotFoundError"),
    "unknown hook": (HOOK + "def lanch(run): ...\n", "there is no hook lanch"),
    "unknown argument": (HOOK + "def launch(rum): ...\n", "rum"),
    "old api": ("HPCTRAIN_API = 0\n", "speaks hook API 0; this hpctrain supports 1"),
    "newer api": ("HPCTRAIN_API = 2\n", "speaks hook API 2; this hpctrain supports 1"),
    "api of another type": ("HPCTRAIN_API = '1'\n", "speaks hook API '1'; this hpctrain supports 1"),
    "no api": ("", "does not define HPCTRAIN_API"),
    "exit at import": ("import sys\nsys.exit(0)\n", "cannot be imported: SystemExit: 0"),
    "exit in a hook": (HOOK + "def configure_network(run): raise SystemExit(0)\n", "raised SystemExit: 0"),
    "wrong result": (HOOK + "def configure_network(run): return 'NCCL'\n", "returned str, not Layer"),
    "generator": (HOOK + "def configure_network(run): yield 1\n", "returned generator, not Layer"),
    "raises": (HOOK + "def configure_network(run): {}['hsn']\n", "raised KeyError: 'hsn'"),
    "wrapper": (
        HOOK.replace("@hookimpl\n", "@hookimpl(wrapper=True)\n") + "def configure_network(run): yield\n",
        "cannot be wrapped",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_plugin_is_named(site: Path, how: str) -> None:
    text, said = BROKEN[how]
    cluster(site, "broken", "acme_broken", text)
    cluster(site, "whole", "acme_whole", HOOK + "def configure_network(run): return None\n")
    with pytest.raises(PluginError) as caught:
        add(site, "broken").call("configure_network", **GIVEN)
    assert said in str(caught.value)
    assert "broken (acme-broken 0.3)" in str(caught.value)
    assert caught.value.exit_code == 3
    assert add(site, "whole").call("configure_network", **GIVEN) == ()


def test_a_file_of_hooks_is_not_a_distribution_to_upgrade(tmp_path: Path) -> None:
    file = tmp_path / "acme.py"
    file.write_text("import os\n")
    with pytest.raises(PluginError, match="does not define HPCTRAIN_API") as caught:
        load_file(file, file)
    assert caught.value.problems[0].hint == f"HPCTRAIN_API = 1      (at the top of {file})"


def test_a_raising_hook_shows_its_line(site: Path) -> None:
    cluster(site, "broken", "acme_broken", HOOK + "def configure_network(run):\n    {}['hsn']\n")
    with pytest.raises(PluginError) as caught:
        add(site, "broken").call("configure_network", **GIVEN)
    span = caught.value.problems[0].span
    assert span is not None
    assert (Path(span.file).name, span.line) == ("acme_broken.py", 5)


def test_a_name_that_two_distributions_bring(site: Path) -> None:
    cluster(site, "twice", "acme_one", GOOD, dist="acme-one", version="9.9")
    cluster(site, "twice", "acme_two", GOOD, dist="acme-two", version="0.1")
    cluster(site, "whole", "acme_whole", GOOD)
    with pytest.raises(PluginError, match=r"more than one distribution: acme-one 9.9, acme-two 0.1"):
        add(site, "twice")
    add(site, "whole")


def test_the_first_distribution_on_the_path_shadows_the_same_one_later(tmp_path: Path) -> None:
    cluster(tmp_path / "a", "lumi", "acme_new", GOOD, version="2")
    cluster(tmp_path / "b", "lumi", "acme_old", GOOD, version="1")
    found = installed((str(tmp_path / "a"), str(tmp_path / "b")))
    assert [e.version for e in found["clusters:lumi"]] == ["2"]


def test_what_a_killed_pip_left_of_a_distribution_is_none(site: Path) -> None:
    cluster(site, "lumi", "acme_lumi", GOOD, dist="acme-lumi", version="2")
    cluster(site, "lumi", "acme_lumi", GOOD, dist="~cme-lumi", version="1")
    assert [entry.version for entry in installed((str(site),))["clusters:lumi"]] == ["2"]


def test_the_clusters_that_can_be_installed_are_those_of_the_project() -> None:
    """As its metadata says, so that core need not know them."""
    assert set(published_clusters()) == {"local", *HOMES}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("frontir", 'cluster = "frontier"'), ("olivia", "pip install 'hpctrain[olivia]'"), ("xyzzy", "")],
)
def test_a_cluster_that_is_not_installed(site: Path, name: str, hint: str) -> None:
    cluster(site, "frontier", "acme_frontier", GOOD)
    with pytest.raises(ConfigError) as caught:
        find("clusters", name, installed((str(site),)))
    problem = caught.value.problems[0]
    assert problem.message == f'no cluster "{name}"; installed: frontier'
    assert problem.hint == hint


def test_what_a_plugin_prints_at_import_is_quoted_and_no_answer(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(site, "loud", "acme_loud", "print('a\\x1b]0;x\\x07\\nb')\n" + GOOD)
    load(find("clusters", "loud", installed((str(site),))))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        r"hpctrain: loud (acme-loud 0.3) printed 'a\x1b]0;x\x07' when it was imported",
        "hpctrain: loud (acme-loud 0.3) printed 'b' when it was imported",
    ]


def test_a_file_of_hooks_that_exits_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "acme.py"
    file.write_text("raise SystemExit(0)\n")
    with pytest.raises(PluginError, match="cannot be imported: SystemExit: 0"):
        load_file(file, file)


@pytest.mark.parametrize(
    "waits",
    [
        "import time\ntime.sleep(60)\n",
        "while True: pass\n",
        "import os\nos.read(os.pipe()[0], 1)\n",
        "import subprocess\nsubprocess.run(['sleep', '60'])\n",
        "while True:\n    try: import time; time.sleep(60)\n    except Exception: pass\n",
    ],
)
def test_a_plugin_that_hangs_when_it_is_imported_is_named(
    site: Path, monkeypatch: pytest.MonkeyPatch, waits: str
) -> None:
    monkeypatch.setattr("hpctrain.hooks.load.IMPORT_SECONDS", 0.3)
    cluster(site, "slow", "acme_slow", f"print('begun')\n{waits}" + GOOD)
    cluster(site, "whole", "acme_whole", GOOD)
    with within(30):
        with pytest.raises(PluginError, match=r"cluster slow \(acme-slow 0.3\) cannot be imported") as caught:
            add(site, "slow")
        assert "did not end within 0.3 s" in str(caught.value)
    add(site, "whole")


def test_the_alarm_of_a_program_that_imports_plugins_stays(site: Path) -> None:
    """A program that uses the library, or pytest-timeout, has the same clock."""
    before = signal.getsignal(signal.SIGALRM)
    left, _ = signal.setitimer(signal.ITIMER_REAL, 500)
    try:
        cluster(site, "whole", "acme_whole", GOOD)
        add(site, "whole")
        assert signal.getsignal(signal.SIGALRM) is before
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


def test_plugins_are_imported_in_any_thread(site: Path) -> None:
    cluster(site, "whole", "acme_whole", GOOD)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(add, site, "whole").result()
