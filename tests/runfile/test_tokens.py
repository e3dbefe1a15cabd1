"""A token in `[env]` is refused when the file is loaded, and is not shown by the refusal."""

from __future__ import annotations

import io

import pytest

from hpctrain.errors import ConfigError
from hpctrain.runfile.judging.rules import RUN_CHECKS
from hpctrain.runfile.judging.tokens import check_texts
from hpctrain.ui.problem import problem_json, problem_lines
from hpctrain.ui.term import Term
from tests.runfile.conftest import Project

HEX = "0123456789abcdef0123456789abcdef01234567"
CHECK = RUN_CHECKS[next(key for key in RUN_CHECKS if isinstance(key, tuple) and key[1] == "env")]


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("HF_TOKEN", "anything", 'secrets = ["huggingface"]'),
        ("X", "hf_" + "a" * 20, 'secrets = ["huggingface"]'),
        ("WANDB_API_KEY", "x", 'secrets = ["wandb"]'),
        ("WANDB_KEY", HEX, 'secrets = ["wandb"]'),
        ("my_password", "x", 'secrets = ["my_password"]'),
        ("CLIENT_SECRET", "x", 'secrets = ["client_secret"]'),
        ("https_proxy", "http://me:word@proxy:8080", 'secrets = ["https_proxy"]'),
    ],
)
def test_a_token_is_refused(name: str, value: str, hint: str) -> None:
    (fault,) = CHECK({name: value})
    assert (fault.code, fault.hint) == ("secret-in-env", hint)
    assert value not in fault.message.replace(name, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOKENIZERS_PARALLELISM", "false"), ("HF_TOKEN_PATH", "/x"), ("HF_TOKEN", ""), ("COMMIT", HEX)],
)
def test_what_is_no_token_is_not(name: str, value: str) -> None:
    assert list(CHECK({name: value})) == []


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("curl -H 'Authorization: Bearer abcdefgh' https://x", "secret-in-text", 'secrets = ["NAME"]'),
        ("hf download --token hf_" + "a" * 20, "secret-in-text", 'secrets = ["huggingface"]'),
        ("git clone https://me:word@x.org/y", "secret-in-url", "machine x.org login USER password TOKEN"),
    ],
)
def test_a_token_in_any_other_value_is_reported(text: str, code: str, hint: str) -> None:
    (fault,) = check_texts({"train": {"command": {"argv": ["bash", text]}}})
    assert (fault.code, fault.fatal, fault.hide) == (code, code == "secret-in-url", True)
    assert fault.path == ("train", "command", "argv", 1)
    assert fault.hint.split("      ")[0] == hint


def test_a_token_in_a_value_is_a_warning_of_the_run(project: Project) -> None:
    token = "hf_" + "Zq9" * 8
    loaded, _ = project.load(f'assets.extra.command=["x","{token}"]')
    (problem,) = (p for p in loaded.problems if p.code == "secret-in-text")
    assert problem.where == "assets.extra.command[1]"
    assert "Zq9" not in repr(problem_json(problem))


@pytest.mark.parametrize("how", ["table", "inline", "set"])
def test_its_value_is_never_shown(project: Project, how: str) -> None:
    token = "hf_" + "Zq9" * 8
    sets = [f"env.MY_TOKEN={token}"] if how == "set" else []
    if how == "table":
        project.replace("[env]\n", f'[env]\nMY_TOKEN = "{token}"\n')
    if how == "inline":
        project.replace('[env]\nWANDB_MODE = "offline"\n', "")
        project.replace("[environment]", f'[on.frontier]\nenv = {{ MY_TOKEN = "{token}" }}\n\n[environment]')
    with pytest.raises(ConfigError) as caught:
        project.load(*sets)
    problems = caught.value.problems
    assert "secret-in-env" in [p.code for p in problems]
    shown = "\n".join(problem_lines(problems, Term.of(io.StringIO(), {})))
    assert "Zq9" not in shown + repr([problem_json(p) for p in problems]) + str(caught.value)
    assert "MY_TOKEN" in shown


@pytest.mark.parametrize(
    ("token", "hint"),
    [
        ("hf_" + "Zq9" * 8, '"huggingface"'),
        (HEX, ""),
        ("Zq9" * 8, ""),
        ("ghp_" + "Zq9" * 8, ""),
        ("hf_" + "Zq9" * 30, '"huggingface"'),
        ("Zq9/+" * 12, ""),
    ],
)
@pytest.mark.parametrize("how", ["file", "set"])
def test_a_token_in_place_of_its_name(project: Project, token: str, hint: str, how: str) -> None:
    said = f'["wandb", "{token}"]'
    if how == "file":
        project.replace("[resources]", f"secrets = {said}\n\n[resources]")
    with pytest.raises(ConfigError) as caught:
        project.load(*[f"secrets={said}"] if how == "set" else [])
    (problem,) = caught.value.problems
    assert (problem.where, problem.hint) == ("secrets[1]", hint)
    assert problem.code == ("secret" if token.isidentifier() or token == HEX else "name")
    shown = "\n".join(problem_lines([problem], Term.of(io.StringIO(), {})))
    assert token[:8] not in shown + repr(problem_json(problem)) + str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("huggingfase", '"huggingface"'),
        ("wandbb", '"wandb"'),
        ("mien", '"mine"'),
        ("registry", '[secrets]\nregistry = { file = "~/.config/registry-token" }'),
    ],
)
def test_a_name_that_nobody_knows(project: Project, name: str, hint: str) -> None:
    project.settings('[secrets]\nmine = { env = "MINE" }\n')
    project.replace("[resources]", f'secrets = ["wandb", "mine", "{name}"]\n\n[resources]')
    project.replace("[environment.venv]\nsystem = true", "")
    (warning,) = project.load()[0].problems
    assert (warning.code, warning.fatal, warning.where) == ("unknown-name", False, "secrets[2]")
    near = "" if "=" in hint else f"; {hint} is"
    assert (warning.message, warning.hint) == (f'no secret "{name}" is known{near}', hint)
    assert warning.span is not None
    assert warning.span.line == 4
