"""The network stack as a login node has it: versions read out of files, rows that they meet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.doctor import stack
from hpctrain.doctor.question import Finding, Verdict
from hpctrain_job.libraries import parts, values
from tests.doctor.rig import cluster, examined, findings, question, site

OK, DIFFERS, UNKNOWN, SILENT = Verdict.OK, Verdict.DIFFERS, Verdict.UNKNOWN, Verdict.SILENT
PROFILE = """\
module() {
  case "$2" in
    *ofi*) export LD_LIBRARY_PATH={folder} {more} ;;
  esac
}
"""


def library(folder: Path, name: str, text: str) -> None:
    """A file that a loader's name finds, with this text somewhere inside."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"\x7fELF" + bytes(5000) + text.encode() + bytes(5000))


def lines(home: Path, plugin: str, fabric: str, more: str = "", name: str = "isambard") -> dict[str, Finding]:
    """What is told where the site's modules bring these versions."""
    libraries = home / "lib"
    library(libraries, "libnccl-net.so", f"aws-ofi-nccl {plugin}")
    library(libraries / f"libfabric/{fabric}", "libfabric.so.1", "no version inside")
    folders = f"{libraries}:{libraries}/libfabric/{fabric}"
    (home / ".bash_profile").write_text(PROFILE.replace("{folder}", folders).replace("{more}", more))
    one = site(cluster(name), HOME=str(home))
    return {line.fact: line for line in examined(one, stack.questions(one))}


def told(found: Mapping[str, Finding]) -> dict[str, Verdict]:
    """Name of the row -> verdict, of the rows that were met."""
    return {fact.partition(":")[0]: line.verdict for fact, line in found.items() if ":" in fact}


def test_what_the_facts_say(tmp_path: Path) -> None:
    found = lines(tmp_path, "1.8.1", "1.22.0")
    assert found["version of plugin"].verdict is OK
    assert found["version of plugin"].found == f"1.8.1 ({tmp_path}/lib/libnccl-net.so)"
    assert found["version of libfabric"].verdict is OK
    assert found["version of driver"].verdict is UNKNOWN
    assert told(found) == {"all-reduce": OK, "plugin-all-to-all": UNKNOWN}
    assert "1.17" in next(line.todo for fact, line in found.items() if fact.startswith("plugin-all-to-all"))


def test_a_plugin_that_was_mended_is_a_fact_to_mend(tmp_path: Path) -> None:
    found = lines(tmp_path, "1.18.0", "2.3.1")
    line = found["version of plugin"]
    assert (line.verdict, line.key, line.value) == (DIFFERS, ("network.stack", "plugin"), "1.18.0")
    assert told(found) == {"plugin-names": OK}
    assert found["what is known to go wrong"].verdict is OK


def test_a_bad_pair_that_the_site_s_modules_bring(tmp_path: Path) -> None:
    found = lines(tmp_path, "1.8.1", "1.22.0", "FI_MR_CACHE_MONITOR=memhooks FI_CXI_DEFAULT_TX_SIZE=16384")
    assert told(found) | {"memhooks": DIFFERS, "tx-credits": DIFFERS} == told(found)
    line = next(line for fact, line in found.items() if fact.startswith("memhooks"))
    assert "userfaultfd" in line.todo
    assert "https://github.com/ofiwg/libfabric/issues/9003" in line.todo


def test_other_nodes_libraries_are_not_judged_here(tmp_path: Path) -> None:
    found = lines(tmp_path, "1.8.1", "1.22.0", name="olivia")
    assert {line.verdict for line in found.values()} == {UNKNOWN}


def test_without_anything_there_is_no_verdict(tmp_path: Path) -> None:
    (one,) = stack.questions(site(cluster("isambard")))
    lines_of_nothing = findings(one, json.dumps({"parts": {}, "values": {}}))
    assert lines_of_nothing["version of plugin"].verdict is UNKNOWN
    assert DIFFERS not in {line.verdict for line in lines_of_nothing.values()}
    assert findings(one, "Last login: today\n")["what training on several nodes loads"].verdict is SILENT


def test_leonardo_s_fabric_has_no_plugin(tmp_path: Path) -> None:
    asked = question(stack.questions(site(cluster("leonardo"))), "network stack")
    found = findings(asked, json.dumps({"parts": {}, "values": {"NCCL_IB_DISABLE": "1"}}))
    assert set(found) == {"what is known to go wrong"}, "the facts set the variable to 0"


@pytest.mark.parametrize(
    ("name", "text", "part", "version"),
    [
        ("libnccl.so.2", "NCCL version 2.27.5+cuda12.9", "nccl", "2.27.5"),
        ("librccl.so.1", "RCCL version : 2.26.6", "rccl", "2.26.6"),
        ("librccl-net.so", "aws-ofi-nccl 1.19.2", "plugin", "1.19.2"),
        ("libnccl-net-ofi.so", "aws-ofi-nccl-1.20.0", "plugin", "1.20.0"),
    ],
)
def test_versions_inside_of_files(name: str, text: str, part: str, version: str, tmp_path: Path) -> None:
    library(tmp_path, name, text)
    found = parts({"LD_LIBRARY_PATH": f":{tmp_path}:/nowhere"})
    assert found[part] == {"path": str(tmp_path / name), "version": version}


def test_what_is_preloaded_comes_first_and_a_broken_file_has_no_version(tmp_path: Path) -> None:
    library(tmp_path / "own", "libnccl.so.2", "NCCL version 2.27.5")
    library(tmp_path / "site", "libnccl.so.2", "NCCL version 2.21.5")
    (tmp_path / "site/libnccl-net.so").touch()
    environ = {
        "LD_PRELOAD": f"/nowhere/libnccl.so {tmp_path}/own/libnccl.so.2",
        "LD_LIBRARY_PATH": f"{tmp_path}/site",
    }
    found = parts(environ)
    assert found["nccl"]["version"] == "2.27.5"
    assert found["plugin"]["version"] == ""
    assert values(("NCCL_NET", "LD_PRELOAD"), environ) == {"LD_PRELOAD": environ["LD_PRELOAD"]}


def test_toolkits_say_their_version(tmp_path: Path) -> None:
    (tmp_path / "version.json").write_text('{"cuda" : {"name" : "CUDA SDK", "version" : "12.6.2"}}')
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info/version").write_text("7.1.1-38\n")
    found = parts({"CUDA_HOME": str(tmp_path), "ROCM_PATH": str(tmp_path)})
    assert (found["cuda"]["version"], found["rocm"]["version"]) == ("12.6.2", "7.1.1")


def test_a_fabric_that_the_plugin_alone_finds(tmp_path: Path) -> None:
    fabric = tmp_path / "opt/libfabric/1.22.0/lib64"
    library(fabric, "libfabric.so.1", "nothing")
    library(tmp_path / "own", "libnccl-net.so", f"aws-ofi-nccl 1.8.1\0/nowhere:{fabric}\0")
    found = parts({"LD_LIBRARY_PATH": str(tmp_path / "own")})
    assert found["libfabric"] == {"path": f"{fabric}/libfabric.so.1", "version": "1.22.0"}
