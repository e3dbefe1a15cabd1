"""Stand-in for NeoX's reader of its files: hands the one resolved file on to train.py."""

from __future__ import annotations

from collections.abc import Mapping


class NeoXArgs:
    """The words that deepy.py would pass."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    @classmethod
    def from_ymls(cls, paths: list[str], overwrite_values: Mapping[str, object]) -> NeoXArgs:
        """Read the files."""
        return cls([str(overwrite_values["user_script"]), paths[0]])

    def get_deepspeed_main_args(self) -> list[str]:
        """The launcher's own words come first."""
        return ["--hostfile", "none", *self.words]
