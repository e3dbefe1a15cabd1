"""git with the twin's host under a real name: a pinned commit, a push, a repository that wants a token."""

from __future__ import annotations

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.githost import TOKEN
from tests.twin.services.inside import ready, repository

pytestmark = [pytest.mark.twin, pytest.mark.slow]

QUIET = "export GIT_TERMINAL_PROMPT=0; "


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia, with two repositories on the host."""
    one = ready(twin("olivia"))
    repository(one, "NbAiLab/private", {"train.py": "print('mine')\n"}, private=True)
    return one


def test_a_commit_is_fetched_and_a_branch_pushed(olivia: Twin) -> None:
    commit = repository(olivia, "org/trainer", {"train.py": "print('ours')\n", "a/b.txt": "x"})
    fetch = f"git fetch -q --depth 1 https://github.com/org/trainer {commit} && git checkout -q FETCH_HEAD"
    assert olivia.sh(f"git init -q ~/t && cd ~/t && {fetch} && cat train.py a/b.txt") == "print('ours')\nx"
    push = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m more && git push -q "
    refused = olivia.run(
        "bash", "-c", f"{QUIET}cd ~/t && {push} https://github.com/org/trainer HEAD:x", user="alice"
    )
    assert refused.returncode != 0
    olivia.sh(
        f"{QUIET}cd ~/t && git push -q https://alice:{TOKEN}@github.com/org/trainer HEAD:refs/heads/more"
    )
    assert "refs/heads/more" in olivia.sh("git ls-remote https://github.com/org/trainer")


def test_a_private_repository_wants_a_token(olivia: Twin) -> None:
    line = f"{QUIET}git clone -q https://github.com/NbAiLab/private ~/p"
    assert "could not read Username" in olivia.run("bash", "-c", line, user="alice").stderr
    header = f"-c http.extraHeader='Authorization: Bearer {TOKEN}'"
    olivia.sh(f"{QUIET}git {header} clone -q https://github.com/NbAiLab/private.git ~/p && cat ~/p/train.py")
    wrong = olivia.run("bash", "-c", line.replace("//", "//alice:other@").replace("~/p", "~/q"), user="alice")
    assert "Authentication failed" in wrong.stderr


def test_a_compute_node_reaches_it_by_the_proxy_alone(olivia: Twin) -> None:
    node = olivia.site.hosts[0].name
    line = f"{QUIET}git ls-remote https://github.com/org/trainer"
    assert olivia.run("bash", "-c", line, user="alice", node=node).returncode != 0
    olivia.sh(f"export https_proxy=http://10.63.2.48:3128; {line}", node=node)
