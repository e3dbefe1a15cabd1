"""The same walk where an environment is built first: every technology that this computer has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.e2e.canaries import Canaries
from tests.e2e.product import Product, small
from tests.e2e.test_canaries import walk, with_secrets
from tests.environments.conftest import serve as serve
from tests.environments.conftest import shelf as shelf
from tests.environments.conftest import uv_wheel
from tests.environments.indexes import LOGIN, Index, basic
from tests.environments.test_contained import boxed as boxed

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
IN_A_BOX = 'use = "ready"\n[environment.ready]\nimage = "/nonexistent/image.sif"\n'


def built(use: str, index: Index) -> str:
    """The table of an environment with a package of an index that wants a login."""
    options = f'build = []\nindex_url = "{index.url}"'
    return f'use = "{use}"\npython = "{PYTHON}"\npackages = ["beta"]\n[environment.{use}]\n{options}\n'


def in_environment(text: str, table: str) -> str:
    """A run file of `small()` in this environment, whose program proves to be inside."""
    return text.replace('use = ""\n', table, 1)


@pytest.mark.parametrize("use", ["venv", "uv"])
def test_an_environment_of_an_index_with_a_login(
    use: str, here: Product, serve: Callable[..., Index], shelf: Path
) -> None:
    if use == "uv":
        uv_wheel(shelf)
    index = serve(shelf, private=True)
    canaries = Canaries()
    canaries.values.update({"login": LOGIN[1], "login in HTTP": basic().split()[1]})
    user = canaries.given_to(here)
    user = attrs.evolve(user, environ={**user.environ, "no_proxy": "127.0.0.1"})
    # pip asks it too, and waits long for one that does not answer.
    pip = f"[global]\nextra-index-url = {index.url_with_login}\n"
    (user.home / ".config/pip/pip.conf").write_text(pip)
    with (user.home / ".netrc").open("a") as file:
        file.write(f"machine 127.0.0.1 login {LOGIN[0]} password {LOGIN[1]}\n")
    table = built(use, index)
    program = f'{canaries.program()}; python -c "import beta"'
    text = in_environment(with_secrets(small(program)), table)
    with canaries.watched() as command_lines:
        printed = walk(user, canaries, text, in_environment(with_secrets(small("exit 3")), table))
    assert any(authorization == basic() for _, authorization in index.requests)
    assert canaries.leaks(user, *printed) == []
    assert command_lines == set()


def test_a_container(boxed: Product) -> None:
    """The container sees the folder of its own tokens while it runs; its engine is a stand-in."""
    canaries = Canaries()
    user = canaries.given_to(boxed)
    text = in_environment(with_secrets(small(canaries.program())), IN_A_BOX)
    with canaries.watched() as command_lines:
        printed = walk(user, canaries, text, in_environment(with_secrets(small("exit 3")), IN_A_BOX))
    assert canaries.leaks(user, *printed) == []
    assert command_lines == set()
