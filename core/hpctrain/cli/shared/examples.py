"""The run files that installed clusters bring as examples, with the files that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from hpctrain.errors import ConfigError
from hpctrain.hooks import load
from hpctrain.hooks.scan import names
from hpctrain.runfile.keys import nearest
from hpctrain.runfile.reading.text import read_toml

_CLUSTER = re.compile(r'^(cluster\s*=\s*)"[^"]*"', re.MULTILINE)


@frozen(kw_only=True)
class Example:
    """A run file of an installed cluster."""

    cluster: str
    path: Path
    trainer: str

    @property
    def title(self) -> str:
        """`alps/two-nodes`."""
        return f"{self.cluster}/{self.path.stem}"

    def text(self, cluster: str = "") -> str:
        """The run file, for another cluster where one is named."""
        text = self.path.read_text(encoding="utf-8")
        return _CLUSTER.sub(rf'\1"{cluster}"', text, count=1) if cluster else text

    def companions(self) -> Iterator[tuple[Path, Path]]:
        """Every file beside it that it names, alone or in a folder: its path, and as the run file sees it."""
        text, folder = self.path.read_text(encoding="utf-8"), self.path.parent
        for neighbour in sorted(folder.iterdir()):
            if neighbour == self.path or f'"{neighbour.name}"' not in text:
                continue
            inside = sorted(neighbour.rglob("*")) if neighbour.is_dir() else [neighbour]
            files = (path for path in inside if path.is_file() and "__pycache__" not in path.parts)
            yield from ((path, path.relative_to(folder)) for path in files)


def every_example() -> list[Example]:
    """Those of all installed clusters."""
    return [
        Example(cluster=cluster, path=path, trainer=_trainer(path))
        for cluster in names("clusters")
        for path in sorted((_folder(cluster) / "examples").glob("*.toml"))
    ]


def example_named(title: str) -> Example:
    """The example `CLUSTER/NAME`, or `NAME` where one cluster alone has it; ConfigError with the nearest."""
    examples = every_example()
    matches = [example for example in examples if title in (example.title, example.path.stem)]
    if len(matches) == 1:
        return matches[0]
    titles = [example.title for example in matches or examples]
    near = nearest(title, [*titles, *(example.path.stem for example in examples)])
    best = titles[0] if matches else next(iter(near), "")
    message = f"{len(matches)} clusters have an example {title}" if matches else f"no example {title!r}"
    hint = f"hpctrain init run --example {best}" if best else ""
    raise ConfigError.of("usage", message, notes=("examples: " + ", ".join(titles),), hint=hint)


def example_of(trainer: str, cluster: str) -> Example:
    """An example of this trainer, the cluster's own before all; ConfigError where nobody brings one."""
    matches = [example for example in every_example() if example.trainer == trainer]
    matches.sort(key=lambda example: example.cluster != cluster)
    if matches:
        return matches[0]
    installed = names("trainers")
    near = [name for name in nearest(trainer, installed) if name != trainer]
    reason = "no example" if trainer in installed else "not one of " + ", ".join(installed)
    raise ConfigError.of(
        "usage",
        f"--trainer {trainer}: {reason}",
        hint=f"hpctrain init run --trainer {near[0] if near else 'trl'}",
    )


def _trainer(path: Path) -> str:
    return str(read_toml(path).data.get("train", {}).get("use", ""))


def _folder(cluster: str) -> Path:
    return Path(str(load.load(load.find("clusters", cluster)).__file__)).parent
