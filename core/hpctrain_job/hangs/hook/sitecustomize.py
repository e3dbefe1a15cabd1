"""Python runs this when it starts: the pulse begins, then the environment's own module of this name runs."""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys


def _begin() -> None:
    if os.environ.get("HPC_PULSE"):
        from hpctrain_job.hangs import pulse

        pulse.start(os.environ)


def _hidden() -> None:
    """The next module of this name, which this one hides."""
    own_folder = os.path.dirname(__file__)  # noqa: PTH120  # pathlib takes longer to import than all of this
    paths = [path for path in sys.path if path != own_folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


with contextlib.suppress(Exception):
    _begin()
_hidden()
