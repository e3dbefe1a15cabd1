"""Each way in which an index is out of reach, by the real pip and the real uv: its own name, its own cure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv as standard_venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, HpctrainError, IntegrityError, NotReachable, Problem
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels import uv_tool
from tests.defaults.rig import cluster
from tests.environments.indexes import Index, authority, closed_port
from tests.environments.small_wheel import wheel
from tests.environments.test_venv import asked

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
BOTH = pytest.mark.parametrize("program", ["pip", "uv"])
NOBODY = "index.nowhere.invalid"
Serve = Callable[..., Index]
NEEDS_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on this computer")


@pytest.fixture
def index(request: pytest.FixtureRequest) -> Iterator[Index]:
    """An index that answers every request with the status of the test's parameter."""
    server = Index(status=request.param)
    yield server
    server.close()


def locked(program: str, home: Path, *packages: str, **more: str) -> tuple[Pin, ...]:
    """Lock as pip does for this computer, or uv for another; `more` besides `index_url` are variables."""
    index_url = more.pop("index_url", "")
    spec: RunSpec = asked(*packages, python=PYTHON, index_url=index_url)
    on = cluster() if program == "pip" else cluster(arch="aarch64")
    # Fewer tries than usual, only so that the test ends soon.
    environ = {"PATH": PATH, "HOME": str(home), "PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0", **more}
    return tuple(venv.pin(run=spec, cluster=on, tools=Tools(environ=environ)))


def refused(error: type[HpctrainError], program: str, home: Path, **more: str) -> Problem:
    with pytest.raises(error) as caught:
        locked(program, home, "alpha", **more)
    (problem,) = caught.value.problems
    assert type(caught.value) is error
    assert problem.hint
    return problem


@BOTH
@pytest.mark.parametrize(
    ("index", "code", "words"),
    [
        (401, "index-login", "wants a login"),
        (403, "index-login", "wants a login"),
        (500, "no-index", "cannot answer now"),
        (503, "no-index", "cannot answer now"),
        (407, "index-proxy", "wants a login"),
    ],
    indirect=["index"],
)
def test_what_an_index_answers(program: str, index: Index, code: str, words: str, tmp_path: Path) -> None:
    problem = refused(NotReachable, program, tmp_path, index_url=index.url)
    assert problem.code == code
    assert words in problem.message
    assert index.host in problem.message
    assert index.requests
    if code == "index-login":
        assert problem.hint.startswith("machine 127.0.0.1 login ")


@BOTH
@NEEDS_OPENSSL
def test_a_certificate_that_nobody_here_trusts(program: str, serve: Serve, tmp_path: Path) -> None:
    _, shown = authority(tmp_path)
    problem = refused(NotReachable, program, tmp_path, index_url=serve(tls=shown).url)
    assert problem.code == "index-certificate"
    assert "SSL_CERT_FILE" in problem.hint


@BOTH
@NEEDS_OPENSSL
def test_the_cure_of_the_hint_works(program: str, serve: Serve, shelf: Path, tmp_path: Path) -> None:
    trusted, shown = authority(tmp_path)
    cure = {"uv": "SSL_CERT_FILE", "pip": "PIP_CERT"}[program]  # the pip that a new venv brings may be old
    pins = locked(program, tmp_path, "beta", index_url=serve(shelf, tls=shown).url, **{cure: str(trusted)})
    versions = {p.name: p.value.split()[0] for p in pins if p.kind == "pypi"}
    assert (versions["alpha"], versions["beta"]) == ("1.0", "1.0")


def test_uv_trusts_what_the_system_trusts_unless_its_user_says_otherwise() -> None:
    assert uv_tool.environment({}) == {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    assert set(uv_tool.environment({"UV_NATIVE_TLS": "0"}).values()) == {"0"}
    assert set(uv_tool.environment({"UV_SYSTEM_CERTS": "false"}).values()) == {"false"}


@BOTH
def test_a_proxy_that_wants_a_login(program: str, serve: Serve, tmp_path: Path) -> None:
    proxy = f"http://{serve(status=407).host}"
    problem = refused(
        NotReachable, program, tmp_path, index_url="https://index.example/simple", https_proxy=proxy
    )
    assert (problem.code, "index.example" in problem.message) == ("index-proxy", True)
    assert "https_proxy=" in problem.hint


@BOTH
def test_a_proxy_that_is_not_there(program: str, tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{closed_port()}"
    problem = refused(
        NotReachable, program, tmp_path, index_url="https://index.example/simple", https_proxy=proxy
    )
    assert problem.code == "index-proxy"
    assert "unset https_proxy" in problem.hint


@BOTH
def test_a_name_that_does_not_exist(program: str, tmp_path: Path) -> None:
    problem = refused(NotReachable, program, tmp_path, index_url=f"https://{NOBODY}/simple")
    assert (problem.code, problem.message) == ("no-index", f"nobody knows the name {NOBODY} here")
    assert problem.hint.startswith("[environment.venv]\nindex_url")


@BOTH
def test_nobody_listens(program: str, tmp_path: Path) -> None:
    host = f"127.0.0.1:{closed_port()}"
    problem = refused(NotReachable, program, tmp_path, index_url=f"http://{host}/simple")
    assert problem.code == "no-index"
    assert "cannot be reached" in problem.message


@pytest.mark.parametrize(
    ("program", "variable", "value"),
    [
        ("uv", "UV_DEFAULT_INDEX", "http://host:99999/simple"),
        ("pip", "PIP_INDEX_URL", "http://host:99999/simple"),
        ("pip", "PIP_INDEX_URL", "no address at all"),
        ("pip", "PIP_INDEX_URL", f"http://{NOBODY}/simple"),
    ],
)
def test_an_address_of_the_users_configuration_that_is_none(
    program: str, variable: str, value: str, tmp_path: Path
) -> None:
    assert refused(ConfigError, program, tmp_path, **{variable: value}).code == "index-url"


@BOTH
def test_packages_that_do_not_fit(program: str, serve: Serve, shelf: Path, tmp_path: Path) -> None:
    index = serve(shelf)
    with pytest.raises(ConfigError, match=f"do not fit together for Python {PYTHON}") as caught:
        locked(program, tmp_path, "beta", "alpha==2.0", index_url=index.url)
    assert caught.value.problems[0].code == "no-solution"
    with pytest.raises(ConfigError, match="no index that was asked has alpha==7") as caught:
        locked(program, tmp_path, "alpha==7", index_url=index.url)
    assert caught.value.problems[0].code == "no-solution"
    with pytest.raises(ConfigError, match="no index that was asked has nothing") as caught:
        locked(program, tmp_path, "nothing", index_url=index.url)
    assert caught.value.problems[0].code == "no-solution"


@BOTH
@pytest.mark.parametrize("damage", [b"<html>please log in</html>", None], ids=["a page", "no metadata"])
def test_a_file_that_is_no_package(program: str, serve: Serve, tmp_path: Path, damage: bytes | None) -> None:
    folder = tmp_path / "shelf"
    folder.mkdir()
    path = wheel(folder, "alpha", "1.0")
    if damage is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("alpha.py", "")
    else:
        path.write_bytes(damage)
    problem = refused(IntegrityError, program, tmp_path, index_url=serve(folder).url)
    assert problem.code == "package-damaged"
    assert "the file of alpha" in problem.message


def test_a_page_that_one_index_refuses_is_not_why_packages_do_not_fit(
    serve: Serve, shelf: Path, tmp_path: Path
) -> None:
    closed, index = serve(status=403), serve(shelf)
    more = {"index_url": index.url, "PIP_EXTRA_INDEX_URL": closed.url}
    with pytest.raises(ConfigError, match="do not fit together") as caught:
        locked("pip", tmp_path, "beta", "alpha==2.0", **more)
    assert caught.value.problems[0].code == "no-solution"
    assert closed.requests


def test_uv_asks_no_other_index_after_one_that_wants_a_login(
    serve: Serve, shelf: Path, tmp_path: Path
) -> None:
    closed, index = serve(status=403), serve(shelf)
    problem = refused(NotReachable, "uv", tmp_path, index_url=index.url, UV_INDEX=closed.url)
    assert (problem.code, closed.host in problem.message) == ("index-login", True)


def test_uv_beside_the_running_python_needs_no_path(serve: Serve, shelf: Path, tmp_path: Path) -> None:
    wheel(shelf, "far", "1.0", tag=f"cp{PYTHON.replace('.', '')}-cp{PYTHON.replace('.', '')}-linux_aarch64")
    pins = locked("uv", tmp_path, "alpha", index_url=serve(shelf).url, PATH="/usr/bin:/bin")
    assert [(p.name, p.value.split()[0]) for p in pins] == [("alpha", "2.0")]


def test_without_uv_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    """In a Python that has all that hpctrain needs but uv."""
    standard_venv.create(tmp_path / "bare", with_pip=False)
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("attr", "attrs", "cattrs", "click", "pluggy", "yaml", "typing_extensions", "exceptiongroup"):
        for found in (Path(p) for p in sys.path if Path(p, name).is_dir() or Path(p, f"{name}.py").is_file()):
            target = found / name if (found / name).is_dir() else found / f"{name}.py"
            (packages / target.name).symlink_to(target)
            break
    root = Path(__file__).resolve().parents[2]
    code = (
        f"import sys; sys.path += {[str(p) for p in (root, root / 'core', root / 'plugins', packages)]!r}\n"
        "from hpctrain.errors import NotReachable\n"
        "from hpctrain.run.system.tools import Tools\n"
        "from hpctrain_plugins.environments.wheels import pins_foreign\n"
        "from tests.defaults.rig import cluster\n"
        "try: pins_foreign.program(cluster(arch='aarch64'), Tools())\n"
        "except NotReachable as error: print(error.problems[0].code, error.problems[0].hint)\n"
    )
    done = subprocess.run(
        (str(tmp_path / "bare/bin/python"), "-c", code),
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.stdout.strip() == "no-uv python -m pip install uv", done.stderr
