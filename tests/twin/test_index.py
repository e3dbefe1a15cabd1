"""pip and uv with the twin's package index: prefetched on the login node, compiled where no network is."""

from __future__ import annotations

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready, shadow

pytestmark = [pytest.mark.twin, pytest.mark.slow]

INDEX = "PIP_INDEX_URL=https://pypi.twin/simple"


@pytest.fixture(scope="module")
def leonardo(twin: Start) -> Twin:
    """Leonardo with an empty venv of alice's, and pip in it."""
    one = ready(twin("leonardo"))
    one.sh("module load python/3.11.7 && python3 -m venv ~/v")
    return one


def on_node(twin: Twin, line: str) -> tuple[int, str]:
    """A shell line as alice on a Booster node: how it ended and what it said."""
    done = twin.run("bash", "-c", line, user="alice", node="lrdn0001", timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_compiled_offline_from_what_the_login_node_fetched(leonardo: Twin) -> None:
    wanted = "mamba-ssm==2.2.5 causal-conv1d==1.5.3 setuptools wheel"
    leonardo.sh(f"{INDEX} ~/v/bin/pip download -q --no-deps -d ~/house {wanted}")
    build = "~/v/bin/pip wheel -q --no-deps --no-index --find-links ~/house -w ~/built mamba-ssm"
    rc, said = on_node(leonardo, build)
    assert rc != 0
    assert "urlopen error" in said, (
        "it looks for a prebuilt wheel, and without a network that is no HTTP error"
    )
    rc, said = on_node(leonardo, f"MAMBA_FORCE_BUILD=TRUE {build}")
    assert rc == 0, said
    use = "~/v/bin/pip install -q --no-index ~/built/*.whl && ~/v/bin/python -c "
    use += "'import mamba_ssm; print(mamba_ssm.total([1.5, 2.5]))'"
    assert on_node(leonardo, use) == (0, "4.0\n")


def test_build_requirements_must_be_fetched_too(leonardo: Twin) -> None:
    leonardo.sh(f"{INDEX} ~/v/bin/pip download -q --no-deps -d ~/needs twin-needs setuptools")
    build = "~/v/bin/pip wheel -q --no-deps --no-index --find-links ~/needs -w ~/needs-built twin-needs"
    rc, said = on_node(leonardo, build)
    assert rc != 0
    assert "twin-backend==1.0" in said
    leonardo.sh(f"{INDEX} ~/v/bin/pip download -q --no-deps -d ~/needs twin-backend==1.0")
    rc, said = on_node(leonardo, build)
    assert rc == 0, said


def test_flash_attention_is_built_without_isolation(leonardo: Twin) -> None:
    done = leonardo.run(
        "bash", "-c", f"{INDEX} ~/v/bin/pip wheel -q --no-deps -w ~/fa flash-attn", user="alice", timeout=120
    )
    assert done.returncode != 0
    assert "No module named 'ninja'" in done.stdout + done.stderr
    leonardo.sh(
        f"export {INDEX}; ~/v/bin/pip install -q --upgrade setuptools ninja && "
        "~/v/bin/pip wheel -q --no-deps --no-build-isolation -w ~/fa flash-attn && ls ~/fa/flash_attn*.whl"
    )


def test_uv_comes_from_the_index_and_uses_it(leonardo: Twin) -> None:
    leonardo.sh(f"{INDEX} ~/v/bin/pip install -q uv==0.13.8")
    uv = "UV_INDEX_URL=https://pypi.twin/simple ~/v/bin/uv --system-certs"
    leonardo.sh(f"{uv} venv -q ~/u && {uv} pip install -q --python ~/u/bin/python 'twin-pure<1.1'")
    assert leonardo.sh("~/u/bin/python -c 'import twin_pure; print(twin_pure.VERSION)'") == "1.0\n"


def test_the_real_names_can_be_the_twin_s_own(leonardo: Twin) -> None:
    shadow(leonardo)
    line = "~/v/bin/pip download -q --no-deps --no-cache-dir -d ~/real twin-pure"
    leonardo.sh(
        f"{line} && {line} --index-url https://download.pytorch.org/whl/rocm6.1 && ls ~/real/*1.1*.whl"
    )
    rc, said = on_node(leonardo, f"timeout 60 {line} --retries 0")
    assert rc != 0
    assert "No matching distribution" in said
