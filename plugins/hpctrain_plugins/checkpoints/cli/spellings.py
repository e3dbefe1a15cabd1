"""The option names of converters that people have in their notes, read as ours.

--merge_lora --model_dir DIR --output_path OUT
--input_dir DIR --config_file FILE --output_dir OUT --precision bf16
--hf-model MODEL --revision REV --output-dir OUT --tp 2 --iteration 0 --no-transformer-engine
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_SOURCE = {"--model_dir", "--input_dir", "--hf-model"}
_RENAMED = {
    "--output_path": "--out",
    "--output_dir": "--out",
    "--output-dir": "--out",
    "--config_file": "--config",
    "--precision": "--dtype",
}
_SWITCHES = {
    "--merge_lora": (),  # an adapter is always merged: without its base it is no model
    "--merge-lora": (),
    "--transformer-engine": ("--naming", "te"),
    "--no-transformer-engine": ("--naming", "legacy"),
}
_IMPLIED = {"--hf-model": ("--to", "neox", "--naming", "te")}
"""What a converter does that has only one target; options of the line come later and win."""

_AUTO = ("--dtype", "auto")


def ours(argv: Sequence[str]) -> list[str]:
    """The words of a command line with every such option as this command calls it."""
    first: list[str] = []
    remaining: list[str] = []
    words = _split(argv)
    for word in words:
        if word == "--":
            return [*first, *remaining, word, *words]
        first += _IMPLIED.get(word, ())
        if word in _SWITCHES:
            remaining += _SWITCHES[word]
        elif word not in _SOURCE:
            remaining.append(_RENAMED.get(word, word))
    return first + _without_auto(remaining)


def _split(argv: Sequence[str]) -> Iterator[str]:
    """`--name=value` of these options as two words."""
    for word in argv:
        name, equal, value = word.partition("=")
        if equal and (name in _RENAMED or name in _SOURCE):
            yield from (name, value)
        else:
            yield word


def _without_auto(words: list[str]) -> list[str]:
    """A precision of `auto` is to keep what is there."""
    pairs = zip(words, ["", *words], strict=False)
    return ["keep" if (before, word) == _AUTO else word for word, before in pairs]
