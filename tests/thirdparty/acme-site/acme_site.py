from __future__ import annotations

from collections.abc import Generator

import attrs

from hpctrain import hookimpl
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.step import Launch

HPCTRAIN_API = 1


@hookimpl(tryfirst=True)
def configure_network() -> Layer:
    return Layer(env=(EnvVar(name="NCCL_NET", value="Socket", why="our fabric is under repair"),))


@hookimpl(wrapper=True)
def launch() -> Generator[None, Launch, Launch]:
    return attrs.evolve((yield), prefix=("numactl", "--localalloc"))
