"""What a conversation of OpenAI's form must be, rule by rule; every rule says what and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpctrain_tokens.jsonrows import describe

ROLES = ("system", "developer", "user", "assistant", "tool")
PARTS = ("text", "image_url", "input_audio", "file", "refusal")
BEGINS = ("system", "developer")

Path = tuple["str | int", ...]


@dataclass(frozen=True)
class Finding:
    """One broken rule, with the path of the value in its row."""

    code: str
    message: str
    path: Path
    hint: str = ""


def broken(row: dict[str, Any], key: str) -> Iterator[Finding]:
    """Every rule that a row breaks, in the order of the row."""
    turns = row.get(key)
    if key not in row:
        keys = ", ".join(map(str, row)) or "none"
        yield Finding("row-key", f'there is no "{key}"; the keys are: {keys}', ())
    elif not isinstance(turns, list):
        yield Finding("not-messages", f"{key} is {describe(turns)}, a list of messages is needed", (key,))
    elif not turns:
        yield Finding("chat-empty", "there are no messages", (key,))
    else:
        shaped = True
        for i, turn in enumerate(turns):
            findings = list(_turn(turn, (key, i)))
            shaped = shaped and not any(f.code in ("chat-role", "not-messages") for f in findings)
            yield from findings
        if shaped:
            yield from _order(turns, key)


def _turn(turn: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(turn, dict):
        yield Finding("not-messages", f"a message is {describe(turn)}, an object is needed", path)
        return
    yield from _role(turn, path)
    yield from _content(turn, path)


def _role(turn: dict[str, Any], path: Path) -> Iterator[Finding]:
    role = turn.get("role")
    if "role" not in turn:
        yield Finding("chat-role", "the message has no role", path)
    elif role not in ROLES:
        near = difflib.get_close_matches(str(role), ROLES, 1)
        hint = f'did you mean "{near[0]}"?' if near else ""
        quoted = f'"{role}"' if isinstance(role, str) else describe(role)
        yield Finding("chat-role", f"role {quoted} is not one of {', '.join(ROLES)}", (*path, "role"), hint)


def _content(turn: dict[str, Any], path: Path) -> Iterator[Finding]:
    calls, content, where = bool(turn.get("tool_calls")), turn.get("content"), (*path, "content")
    if "content" not in turn or content is None:
        if not (calls and turn.get("role") == "assistant"):
            state = "null" if "content" in turn else "missing"
            yield Finding("chat-content", f"content is {state}", where if "content" in turn else path)
    elif isinstance(content, str):
        if not content.strip() and not calls:
            yield Finding("chat-empty", "content is empty", where)
        elif any("\ud800" <= letter <= "\udfff" for letter in content):
            yield Finding("surrogate", "content holds half of a character", where)
    elif isinstance(content, list):
        yield from _parts(content, where)
    else:
        yield Finding(
            "chat-content", f"content is {describe(content)}, text or a list of parts is needed", where
        )


def _parts(parts: list[Any], path: Path) -> Iterator[Finding]:
    if not parts:
        yield Finding("chat-empty", "content is empty", path)
    for i, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in PARTS:
            quoted = f'"{kind}"' if isinstance(kind, str) else "missing"
            yield Finding("chat-content", f"type is {quoted}, not one of {', '.join(PARTS)}", (*path, i))
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield Finding("chat-content", f"text is {describe(part.get('text'))}, text is needed", (*path, i))


def _order(turns: list[dict[str, Any]], key: str) -> Iterator[Finding]:
    """Who may speak after whom: instructions, then user and assistant in turn, tools after their call."""
    before = ""
    for i, turn in enumerate(turns):
        role, where = turn["role"], (key, i, "role")
        problem = _after(before, role, turns[i - 1] if i else {})
        if problem:
            yield Finding("chat-order", problem, where)
        before = role
    if "assistant" not in {turn["role"] for turn in turns}:
        yield Finding("chat-no-answer", "no message is of the assistant: nothing would be learnt", (key,))
    elif before != "assistant":
        message = f"the last message is of {before}; what follows no assistant is not learnt"
        yield Finding("chat-end", message, (key, len(turns) - 1, "role"))


def _after(before: str, role: str, last: dict[str, Any]) -> str:
    """What is wrong with a role after the one before; empty when nothing is."""
    if role in BEGINS:
        return "" if not before else f"{role} comes first, not after {before}"
    if role == "tool":
        called = before == "tool" or (before == "assistant" and last.get("tool_calls"))
        return "" if called else f"tool answers a call, and {before or 'nothing'} before it made none"
    if role == "user":
        return "user follows user; their turns alternate" if before == "user" else ""
    if before in ("", *BEGINS):
        return "assistant comes first; a user has to ask"
    return "assistant follows assistant; their turns alternate" if before == "assistant" else ""
