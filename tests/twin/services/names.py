"""Who answers under which names in a twin, and at which of its addresses."""

from __future__ import annotations

NET = "10.78.0.0/24"
"""Services that stand for the internet: nodes without a way out have no route to it."""
WEB, REGISTRY = "10.78.0.1", "10.78.0.2"
HOSTS = {
    "hub": ("huggingface.co", "hub.twin"),
    "index": ("pypi.twin",),
    "conda": ("conda.anaconda.org", "conda.twin"),
    "git": ("github.com", "git.twin"),
}
"""By service; all are at WEB."""
REGISTRIES = ("registry.twin", "nvcr.io", "quay.io", "ghcr.io", "registry-1.docker.io")
SHADOWED = ("pypi.org", "files.pythonhosted.org", "download.pytorch.org")
"""Real names that the index takes over when a test asks for it (`shadow`): until then a login node
reaches the machine's own index under them."""


def lines() -> list[str]:
    """For the hosts file."""
    return [
        f"{WEB} {' '.join(n for names in HOSTS.values() for n in names)}",
        f"{REGISTRY} {' '.join(REGISTRIES)}",
    ]


def certified() -> str:
    """All names, as a certificate says them."""
    names = (*(n for names in HOSTS.values() for n in names), *REGISTRIES, *SHADOWED)
    return ",".join(f"DNS:{name}" for name in names)
