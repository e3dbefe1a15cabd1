"""Known failures of images and overlays: what a log says, why, and what mends it."""

from __future__ import annotations

from hpctrain.plugin import Rule
from hpctrain_plugins.environments.image import rules

RULES = (
    *rules.RULES,
    rules.another_version("apptainer"),
    Rule(
        name="image-arch",
        pattern=r"hpctrain: the image is for \S+, and the training nodes are|FATAL:.*exec format error"
        r"|FATAL: +image targets '\w+', cannot run on",
        cause="the image is made for another architecture than the training nodes",
        fix='image = "nvcr.io/nvidia/pytorch:25.06-py3"      (one that is made for them too)',
    ),
    Rule(
        name="proxy-down",
        pattern=r"ProxyError\('(?:Cannot|Unable to) connect to proxy",
        cause="the site's proxy, the only way to the internet from its compute nodes, did not answer",
        fix="hpctrain submit run.toml      (when it answers again; what was built is kept)",
    ),
    Rule(
        name="no-mksquashfs",
        pattern=r"mksquashfs: command not found",
        cause="the node has no mksquashfs, which packs the overlay",
        fix='[environment.apptainer]\noverlay = "ext3"',
    ),
)
