"""Parts of written pages that come from the code: `<!-- from the code: NAME -->` to `<!-- end -->`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from hpctrain.cli.show import classes
from hpctrain.hooks import specs
from hpctrain.hooks.marker import hookimpl
from hpctrain.hooks.scan import installed
from hpctrain.model.docstrings import docstrings
from hpctrain.plan.variables import Level
from hpctrain.session import Session
from hpctrain_plugins.schedulers import pbs, pbs_render
from tests.docs.markdown import section_lines
from tests.hooks.dists import GOOD, distribution
from tests.packaging.places import project

WIDTH = 110
PART = re.compile(r"(<!-- from the code: ([\w-]+) -->\n)(.*?)([ ]*<!-- end -->)", re.DOTALL)

RUN = """
name = "small"
cluster = "local"
environment = { use = "ready", ready = { prefix = "/usr" } }
assets = { text = { path = "." }, tokens = { use = "tokens", options = { inputs = ["text"] } } }
checkpoint = { export = "hf" }
train = { use = "trl" }
hooks = { file = "mine.py" }
"""
"""A run whose plugins are of every kind."""

PLANNED = """
name = "small"
cluster = "alps"
secrets = ["huggingface"]
resources = { nodes = 2, time = "1h", account = "g999" }
environment = { use = "ready", ready = { prefix = "/usr" } }
assets = { model = { hub = "a/b" }, text = { hub = "a/c" } }
checkpoint = { export = "hf" }
train = { use = "trl", trl = { train_dataset = "text" } }
"""
"""A run for which every hook of a plan is asked."""

KINDS = {
    "core": "core's own answers",
    "converters": "converters, where `[checkpoint] export` asks for one",
    "schedulers": "the scheduler",
    "trainers": "the trainer",
    "environments": "the environment",
    "data": "data plugins that an asset names with `use`",
    "clusters": "the cluster",
    "hooks:site": "installed site hooks",
    "hooks:mine.py": "the run file's `[hooks] file`",
    "hooks:Extra": "`Session(extra=…)`",
}
"""What a plugin of this kind is called; of hooks it depends on where they come from."""


class Extra:
    """Hooks that a Python program adds; the name of the class is theirs."""


def order() -> list[str]:
    """The kinds of plugins as a session registers them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        distribution(
            folder, "site", "1", {"hpctrain.hooks": {"site": "site_of_parts"}}, {"site_of_parts": GOOD}
        )
        (folder / "mine.py").write_text(GOOD)
        (folder / "run.toml").write_text(RUN)
        sys.path.insert(0, name)
        installed.cache_clear()
        try:
            session = Session(folder / "run.toml", environ={"HOME": name}, extra=(Extra(),))
        finally:
            sys.path.remove(name)
            sys.modules.pop("site_of_parts", None)
            installed.cache_clear()
    ids = [plugin.partition(" ")[0] for plugin in session.hooks.plugins]
    kinds = [word if word in KINDS else word.partition(":")[0] for word in ids]
    return [KINDS[kind] for kind, _ in groupby(kinds)]


def registration() -> str:
    """The order of registration, the first that is asked last."""
    return f"{textwrap.fill(', '.join(order()), WIDTH)}.\n"


def priority() -> str:
    """The same from the other end: whose answer comes first."""
    return "".join(f"{number}. {words}\n" for number, words in enumerate(reversed(order()), 1)).rstrip()


def hooks_of_a_plan() -> str:
    """The hooks that a plan asks, in the order in which each is asked first."""
    hook_names: dict[str, None] = {}
    with TemporaryDirectory() as name:
        path = Path(name, "run.toml")
        path.write_text(PLANNED)
        session = Session(path, environ={"HOME": name}, extra=(_noting(hook_names),))
        session.plan()
    words = [f"`{hook}`" for hook in hook_names]
    lines = textwrap.wrap(f"{', '.join(words)}.", WIDTH, initial_indent="   ", subsequent_indent="   ")
    return "\n".join(lines) + "\n"


def _noting(hook_names: dict[str, None]) -> object:
    """Hooks of every name that answer nothing and note that they were asked."""
    noting = SimpleNamespace()
    for name in (name for name, hook in vars(specs).items() if hasattr(hook, "hpctrain_spec")):
        namespace: dict[str, Any] = {"hook_names": hook_names}
        exec(f"def {name}():\n    hook_names.setdefault({name!r})\n", namespace)
        setattr(noting, name, hookimpl(tryfirst=True)(namespace[name]))
    return noting


def levels() -> str:
    """The order in which layers are folded."""
    rows = (
        f"{number}. {_words(level)}: {_small(docstrings(Level)[level.name])}\n"
        for number, level in enumerate(Level, 1)
    )
    return "".join(rows)


def _words(level: Level) -> str:
    return f"**{level.name.lower().replace('_', ' ')}**"


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def library() -> str:
    """The classes of a program that uses the library, with all their methods."""
    sections = (line for section in classes.library() for line in section_lines(section, "###"))
    return "".join(f"{line}\n" for line in sections)


TITLES = {
    "environments": '`[environment] use = "{}"`',
    "trainers": '`[train] use = "{}"`',
    "schedulers": '`scheduler = "{}"`',
    "clusters": '`cluster = "{}"`',
    "data": '`[assets.NAME] use = "{}"`',
    "commands": "`hpctrain {}`",
    "checkpoints": "format `{}` of `convert`",
    "converters": "`[checkpoint] export`",
}


def technologies() -> str:
    """Every plugin that the distribution brings, with what its module says of itself."""
    groups = project("hpctrain_plugins")["entry-points"]
    assert {group.partition(".")[2] for group in groups} == set(TITLES)
    rows = [
        f"| {title.format(name)} | {_sentence(module)} |\n"
        for kind, title in TITLES.items()
        for name, module in groups[f"hpctrain.{kind}"].items()
    ]
    return "".join(("| word | what it is |\n", "|---|---|\n", *rows))


def _sentence(module: str) -> str:
    """The first sentence of a module's docstring, without the word that the row begins with."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    sentence = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r"^`[^`]+`: ", "", sentence).rstrip(".")


def pbs_hooks() -> str:
    """The whole module of the PBS plugin's hooks."""
    return f"```python file=pbs.py\n{inspect.getsource(pbs)}```\n"


def pbs_shape() -> str:
    """How that plugin fills a Shape."""
    return _listing(pbs_render.job_files)


def pbs_submit() -> str:
    """The command that submits, and the script that it calls."""
    script = pbs_render.SCRIPTS["qsub.sh"]
    return f"{_listing(pbs_render.submit)}\n```bash\n{script}```\n"


def _listing(function: Callable[..., object]) -> str:
    return f"```text\n{inspect.getsource(function)}```\n"


PARTS: dict[str, Callable[[], str]] = {
    "hooks-of-a-plan": hooks_of_a_plan,
    "levels": levels,
    "library": library,
    "pbs-hooks": pbs_hooks,
    "pbs-shape": pbs_shape,
    "pbs-submit": pbs_submit,
    "registration": registration,
    "technologies": technologies,
}


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """Each part of a page: its name, and what stands there."""
    yield from ((match[2], match[3]) for match in PART.finditer(text))


def written(text: str) -> str:
    """The page with every part as the code has it."""
    return PART.sub(lambda match: f"{match[1]}{PARTS[match[2]]()}{match[4]}", text)
