"""Print the interpreter with torch that the demo's run built; nothing when there is none."""

from __future__ import annotations

from pathlib import Path

from hpctrain import HpctrainError, Session
from hpctrain.render.shell import plain


def main() -> None:
    """Ask the plan of the demo where its environment is published."""
    try:
        session = Session(Path("hpctrain-demo/run.toml"))
        env = session.plan().step_named("env")
    except HpctrainError:
        return
    made = env.step.makes if env else None
    if made is None:
        return
    python = Path(plain(made.loc, session.binding)) / "bin/python"
    if python.exists():
        print(python)


if __name__ == "__main__":
    main()
