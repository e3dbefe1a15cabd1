"""Tokens and labels of a conversation, as the GPT-NeoX fork writes them.

A label is the token's own number where the model learns it and -100 elsewhere; nothing is shifted. Which
tokens belong to a turn is found by rendering the conversation up to it and taking what is new. That is
right only when a longer conversation begins with the tokens of the shorter one, so each turn is checked.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from hpctrain_tokens.chat_template import Template, Turn
from hpctrain_tokens.faults import RowError
from hpctrain_tokens.options import Work
from hpctrain_tokens.tokenizer import Tokenizer

MASKED = -100

Streams = dict[str, "array[int]"]


@dataclass(frozen=True)
class Labeller:
    """Makes the streams of one conversation."""

    work: Work
    tokenizer: Tokenizer
    template: Template = field(init=False)

    def __post_init__(self) -> None:
        template = Template.of(self.tokenizer, self.work.options.template)
        object.__setattr__(self, "template", template)

    def streams(self, row: dict[str, Any]) -> Streams:
        """Everything that is written for one row."""
        options, turns = self.work.options, checked(self.work.fields.messages(row))
        if not options.mask:
            tokens, label = self._whole(turns), []
        elif options.for_rm:
            assert self.work.end is not None
            tokens = self._whole(turns)
            label = [MASKED] * (len(tokens) + 1) + [self.work.end]
            tokens += [self.work.end] * 2  # the trainer drops one end of each when it shifts
        else:
            tokens, label = self._turns(turns)
        result = {"tokens": array("i", tokens)}
        if label:
            result["label"] = array("i", label)
        if options.reward:
            result["reward"] = reward(row, options.reward, options.binary_reward)
        return result

    def _whole(self, turns: list[Turn]) -> list[int]:
        return list(next(self.tokenizer.encode([self.template.render(turns)], "i", bare=True)))

    def _turns(self, turns: list[Turn]) -> tuple[list[int], list[int]]:
        role, last = self.work.options.role, len(turns) - 1
        texts = [
            self.template.render(turns[: i + 1], prompt=i < last and turns[i + 1]["role"] == role)
            for i in range(len(turns))
        ]
        tokens: list[int] = []
        label: list[int] = []
        for i, encoded in enumerate(self.tokenizer.encode(texts, "i", bare=True)):
            now = encoded.tolist()
            if now[: len(tokens)] != tokens:
                raise _unstable(i)
            new = now[len(tokens) :]
            learnt = turns[i]["role"] == role and (i == last or not self.work.options.only_last)
            label += new if learnt else [MASKED] * len(new)
            tokens = now
        if not any(number != MASKED for number in label):
            raise RowError(
                "nothing-learnt", f'no turn of "{role}" is trained on; a batch of such rows has no loss'
            )
        if self.work.end is not None:
            label.append(self.work.end if label[-1] != MASKED else MASKED)
            tokens.append(self.work.end)
        return tokens, label


def checked(turns: list[Turn]) -> list[Turn]:
    """The turns, each with a role and with content that is text."""
    for i, turn in enumerate(turns):
        for key in ("role", "content"):
            value = turn.get(key)
            if key == "content" and value is None and turn.get("tool_calls"):
                continue
            if not isinstance(value, (str, list) if key == "content" else str):
                raise RowError("chat-content", f"{key} is no text", where=f"messages[{i}].{key}")
            if isinstance(value, str):
                _writable(value, f"messages[{i}].{key}")
    return turns


def _writable(text: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise RowError("surrogate", "the text holds half of a character", where=where) from None


def _unstable(turn: int) -> RowError:
    return RowError(
        "chat-template-prefix",
        f"the template renders what is before message {turn + 1} differently once that message is there, "
        "so it is unclear which tokens belong to which turn",
        where=f"messages[{turn}]",
        hint="a template that keeps earlier turns as they were: --chat-template FILE",
    )


def reward(row: dict[str, Any], key: str, binary: bool) -> array[int]:
    """The reward of a row, as whole numbers: the trainer stores no others."""
    if key not in row:
        raise RowError("row-key", f'there is no "{key}"', where=key)
    value = row[key]
    if binary:
        return array("i", [1 if value else -1])
    values = value if isinstance(value, list) else [value]
    whole = [v for v in values if _whole_number(v)]
    if len(whole) != len(values) or not values:
        raise RowError(
            "chat-reward", f'"{key}" is {value!r}, and only whole numbers can be stored', where=key
        )
    return array("i", [int(v) for v in whole])


def _whole_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer()
