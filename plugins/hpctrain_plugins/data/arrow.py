"""`use = "arrow"`: a dataset of the hub as Arrow files, made without the network.

::

    [assets]
    dataset = { hub = "mlabonne/guanaco-llama2-1k" }

    [assets.arrow]
    use     = "arrow"
    options = { from = "dataset", name = "guanaco-llama2-1k" }

A snapshot of the hub holds what its author uploaded, mostly Parquet. This step reads it with the
environment's own `datasets` and leaves `<name>-<split>.arrow`, here `arrow/guanaco-llama2-1k-train.arrow`.
`from` names an asset before it and `subset` its configuration; without `name` the files are called after
the asset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpctrain.plugin import Artifact, Asset, Cmd, ConfigError, File, Need, Step, Var, Word, hookimpl
from hpctrain_plugins.data import keys
from hpctrain_plugins.environments.wheels.packages_spec import step_file

HPCTRAIN_API = 1

OPTIONS = ("from", "name", "subset")
MINUTES = 60
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", re.ASCII)
PROGRAM = "arrow.py"
SCRIPT = '''\
"""arrow.py FROM NAME FOLDER [SUBSET]: every split of a dataset as NAME-SPLIT.arrow."""

import pathlib
import shutil
import sys
import tempfile

import datasets

source, name, folder, *subset = sys.argv[1:]
target = pathlib.Path(folder)
target.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory(dir=target) as cache:
    found = datasets.load_dataset(source, *subset, cache_dir=cache)
    for split, rows in found.items():
        files = [file["filename"] for file in rows.cache_files]
        for number, file in enumerate(files):
            part = f"-{number:05d}-of-{len(files):05d}" if len(files) > 1 else ""
            shutil.move(file, target / f"{name}-{split}{part}.arrow")
        print(f"{name}-{split}.arrow: {len(rows)} rows of {', '.join(rows.column_names)}")
'''


@hookimpl
def prepare_data(name: str, asset: Asset, assets: Mapping[str, Word]) -> tuple[Step, ...] | None:
    """One step in the run's environment."""
    if asset.use != "arrow":
        return None
    source, called, subset = _read(name, asset, assets)
    inputs = {"from": keys.key_part(source), "name": called, "subset": subset}
    command = Cmd.of("python", step_file(PROGRAM), source, called, Var("WORK"), *filter(None, (subset,)))
    return (
        Step(
            name=name,
            commands=(command,),
            needs=frozenset({Need.TARGET}),
            inside=True,
            makes=Artifact(name="arrow", role="assets", inputs=inputs, arch="any"),
            minutes=MINUTES,
            files=(File(path=PROGRAM, body=(SCRIPT,)),),
        ),
    )


def _read(name: str, asset: Asset, assets: Mapping[str, Word]) -> tuple[Word, str, str]:
    options = asset.options
    for key, value in options.items():
        if key not in OPTIONS:
            raise _wrong(name, f'there is no option "{key}"; there are {", ".join(OPTIONS)}', key)
        if not isinstance(value, str):
            raise _wrong(name, f"{key} is a text", key)
    source, called = str(options.get("from", "")), str(options.get("name", name))
    if source not in assets:
        before = ", ".join(assets) or "none"
        message = f"{source} is not an asset" if source else "from names no asset"
        raise _wrong(name, f"{message}; those that stand before it: {before}", "from", 'from = "dataset"')
    if not NAME.match(called):
        raise _wrong(name, f"{called!r} cannot start a file name", "name", 'name = "my-data"')
    return assets[source], called, str(options.get("subset", ""))


def _wrong(name: str, message: str, key: str, hint: str = "") -> ConfigError:
    where = f"assets.{name}.options.{key}"
    return ConfigError.of("data-options", message, where=where, hint=hint)
