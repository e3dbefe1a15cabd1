"""Run pip with any Python: its own, or else the one that every Python brings along unpacked by nobody.

`python -m hpctrain_job.pip …` takes pip's own words. A prefix that is thrown away needs no pip of its own,
whose installation costs more than many a build.
"""

from __future__ import annotations

import runpy
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from hpctrain_job import exit_codes


def bundled() -> Path | None:
    """The wheel of pip that lies beside the standard library."""
    import ensurepip

    folders = [Path(ensurepip.__file__).parent / "_bundled", sysconfig.get_config_var("WHEEL_PKG_DIR")]
    wheels = (wheel for folder in folders if folder for wheel in sorted(Path(folder).glob("pip-*.whl")))
    return next(wheels, None)


def main() -> int:
    """The command line of this module."""
    if find_spec("pip") is None:
        wheel = bundled()
        if wheel is None:
            print(f"error: {sys.executable} has no pip, and none lies beside it", file=sys.stderr)
            return exit_codes.UNAVAILABLE
        sys.path.insert(0, str(wheel))
    sys.argv[0] = "pip"
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
