"""The module tree: the documents' names and versions, and their side effects as variables."""

from __future__ import annotations

import json

from tests.twin.site_file import Module, Site


def files(site: Site) -> dict[str, str]:
    """One Lua file a module, by its path below the tree."""
    return {f"{module.name}.lua": _text(module) for module in site.overlay.module}


def _text(module: Module) -> str:
    name, _, version = module.name.rpartition("/")
    lines = [
        f'whatis("{name or module.name} {version if name else ""}: a stand-in, only its variables are real")'
    ]
    lines += [f'prereq("{need}")' for need in module.needs]
    lines += [f"setenv({json.dumps(key)}, {json.dumps(value)})" for key, value in module.set.items()]
    lines += [
        f"prepend_path({json.dumps(key)}, {json.dumps(value)})" for key, value in module.prepend.items()
    ]
    return "\n".join([*lines, ""])
