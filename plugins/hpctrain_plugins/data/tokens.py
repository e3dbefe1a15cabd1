"""`use = "tokens"`: a trainer's token files from assets that stand before it in the run file.

::

    [assets]
    corpus    = { hub = "cais/wmdp-corpora", kind = "dataset" }
    tokenizer = { hub = "EleutherAI/gpt-neox-20b", files = ["tokenizer*.json"] }

    [assets.tokens]
    use     = "tokens"
    options = { inputs = ["corpus:train"], subset = "bio-retain-corpus", tokenizer = "tokenizer" }

`inputs`, `tokenizer` and `chat_template` name assets, or something inside of one: `corpus/train.jsonl`.
`tokenizer` may also be one of the names that `named` reads from the facts of the cluster.
The other options are those of `hpctrain data prepare`. The result is a folder with
`<asset>_text_document.bin`, here `tokens/tokens_text_document`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.plugin import (
    Artifact,
    Asset,
    Cluster,
    Cmd,
    ConfigError,
    Join,
    Launch,
    Loc,
    Need,
    Step,
    Var,
    Word,
    hookimpl,
)
from hpctrain_plugins.data import keys, named
from hpctrain_plugins.data.named import Named
from hpctrain_tokens import FORMAT
from hpctrain_tokens.commands.parser import parser
from hpctrain_tokens.faults import DataError

HPCTRAIN_API = 1

ROLE = "data"
CORES = 16
"""Beyond, a tokeniser waits for the disk more than for a core."""

MINUTES = 240
BY_PLAN = ("inputs", "output_prefix", "work", "workers", "force")
"""What the plan itself says to the command."""

FROM_ASSETS = ("tokenizer", "chat_template")

_REFERENCE = re.compile(r"(?P<name>[A-Za-z0-9_-]+)(?P<rest>[/:].*)?\Z", re.DOTALL)


@hookimpl
def prepare_data(
    name: str, asset: Asset, cluster: Cluster, assets: Mapping[str, Word]
) -> tuple[Step, ...] | None:
    """One step in the run's environment that makes the files and goes on where a killed one ended."""
    if asset.use != "tokens":
        return None
    asset_options = _AssetOptions(name, asset.options, assets, named.of(cluster))
    inputs = tuple(asset_options.located(text, "inputs") for text in asset_options.inputs())
    options = tuple(asset_options.options())
    read = [keys.key_part(word) for word in (*inputs, *options)]
    artifact = Artifact(name="tokens", role=ROLE, inputs={"format": FORMAT, "read": read}, arch="any")
    cores = min(CORES, cluster.hardware.cores_per_node)
    command = Cmd.of(
        *("python", "-m", "hpctrain_tokens", "prepare", *inputs),
        *("--output-prefix", Join(Var("WORK"), f"/{name}")),
        *("--work", Loc(ROLE, f".partial/{artifact.filename}"), "--workers", "0"),
        *options,
    )
    return (
        Step(
            name=name,
            commands=(command,),
            needs=frozenset({Need.TARGET}),
            inside=True,
            makes=artifact,
            launch=Launch(cpus_per_rank=cores),
            minutes=MINUTES,
            code=("hpctrain_tokens",),
        ),
    )


class _AssetOptions:
    """The options of one asset, judged by the parser of the command itself."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        assets: Mapping[str, Word],
        tokenizers: Mapping[str, Named],
    ) -> None:
        self.name, self.settings, self.assets, self.tokenizers = name, dict(options), assets, tokenizers
        self._add_template()
        for key in BY_PLAN[1:]:
            if key in options:
                raise self.wrong(f"{key} is set by the plan", key)
        plain = [str(word) for word in self._flags(lambda text, _: text)]
        try:
            parser("hpctrain data", "prepare").parse_args([*self.inputs(), "--output-prefix", "x", *plain])
        except DataError as error:
            raise self.wrong(error.faults[0].message) from None

    def _add_template(self) -> None:
        """Use the chat template that the facts name for this tokenizer, where the run file chooses none."""
        tokenizer = str(self.settings.get("tokenizer", ""))
        if (
            tokenizer not in self.assets
            and tokenizer in self.tokenizers
            and self.tokenizers[tokenizer].template
        ):
            self.settings.setdefault("chat_template", self.tokenizers[tokenizer].template)

    def wrong(self, message: str, key: str = "", hint: str = "") -> ConfigError:
        where = f"assets.{self.name}.options" + (f".{key}" if key else "")
        return ConfigError.of(
            "data-options", message, where=where, hint=hint or "hpctrain data prepare --help"
        )

    def inputs(self) -> list[str]:
        names = self.settings.get("inputs")
        if not isinstance(names, (list, tuple)) or not names or not all(isinstance(i, str) for i in names):
            raise self.wrong("inputs names no asset", "inputs", 'inputs = ["corpus:train"]')
        return list(names)

    def located(self, text: str, key: str) -> Word:
        """An asset, what is inside of it, or a path on the cluster."""
        match = _REFERENCE.match(text)
        if match is not None and match["name"] in self.assets:
            place, suffix = self.assets[match["name"]], match["rest"]
            return Join(place, suffix) if suffix else place
        if text.startswith("/"):
            return text
        before = ", ".join(self.assets) or "none"
        message = f"{text} is not an asset; those that stand before it: {before}"
        if key == "tokenizer":
            if text in self.tokenizers:
                return self.tokenizers[text].path
            message += f"; tokenizers with a name: {', '.join(self.tokenizers) or 'none'}"
        raise self.wrong(message, key)

    def options(self) -> Iterator[Word]:
        return self._flags(self.located)

    def _flags(self, locate: Any) -> Iterator[Word]:
        """The options as words of a command line, in the order of their names."""
        for key in sorted(set(self.settings) - {"inputs"}):
            value = self.settings[key]
            flag = f"--{key.replace('_', '-')}"
            if value is True:
                yield flag
            elif value is not False:
                text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
                yield flag
                yield locate(text, key) if key in FROM_ASSETS else text
