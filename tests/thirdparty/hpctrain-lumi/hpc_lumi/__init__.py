"""LUMI-G as somebody else's plugin: facts, and one hook."""

from __future__ import annotations

from hpctrain import hookimpl
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Launch

HPCTRAIN_API = 1


@hookimpl
def configure_network(run: RunSpec, launch: Launch) -> Layer | None:
    if launch.nodes == 1:
        return None
    return Layer(env=(EnvVar(name="MIOPEN_LOG_LEVEL", value="3", why="one line for each kernel else"),))
