from typing import ClassVar

from hpctrain.testing import EnvironmentConformance


class TestPodmanHpc(EnvironmentConformance):
    environment = "podman_hpc"
    options: ClassVar = {"image": "nvcr.io/nvidia/pytorch:25.06-py3"}
