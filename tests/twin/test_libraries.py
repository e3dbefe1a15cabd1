"""The libraries that modules bring have real symbol tables: what looks into them is told the truth."""

from __future__ import annotations

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready

pytestmark = [pytest.mark.twin, pytest.mark.slow]

VERSION = (
    "import ctypes, os, sys; lib = ctypes.CDLL(sys.argv[1]); n = ctypes.c_int(); "
    "lib.ncclGetVersion(ctypes.byref(n)); print(n.value, hasattr(lib, 'ncclCommShrink'))"
)
NAME = (
    "import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); "
    "print(ctypes.c_char_p.in_dll(lib, 'ncclNetPlugin_v8').value.decode())"
)


@pytest.fixture(scope="module")
def isambard(twin: Start) -> Twin:
    """Isambard."""
    return ready(twin("isambard"))


def test_the_site_s_nccl_lacks_the_symbol_and_the_wheel_s_has_it(isambard: Twin) -> None:
    line = f'module load cray-python brics/nccl/2.26.6-1 && python3 -c "{VERSION}" $NCCL_ROOT/lib/libnccl.so'
    assert isambard.sh(line) == "22606 False\n"
    assert "ncclCommShrink" not in isambard.sh("nm -D /tools/brics/apps/nccl/2.26.6-1/lib/libnccl.so.2")
    isambard.sh("module load cray-python && python3 -m venv ~/nv")
    install = "~/nv/bin/pip install -q --index-url https://pypi.twin/simple"
    for version, said in (("2.26.2", "22602 False\n"), ("2.27.5", "22705 True\n")):
        isambard.sh(f"{install} nvidia-nccl-cu12=={version}")
        own = "$(echo ~/nv/lib/python3.*/site-packages/nvidia/nccl/lib/libnccl.so.2)"
        assert isambard.sh(f'~/nv/bin/python -c "{VERSION}" {own}') == said


def test_a_program_that_needs_the_symbol_wants_the_newer_one_preloaded(isambard: Twin) -> None:
    own = "$(echo ~/nv/lib/python3.*/site-packages/nvidia/nccl/lib/libnccl.so.2)"
    install = "~/nv/bin/pip install -q --index-url https://pypi.twin/simple nvidia-nccl-cu12==2.27.5"
    code = "int ncclCommShrink(void); int main(void) { return ncclCommShrink() - 3; }"
    isambard.sh(f"{install} && mkdir -p ~/p && cd ~/p && echo '{code}' >m.c && gcc -o m m.c {own}")
    line = "LD_PRELOAD=/tools/brics/apps/nccl/2.26.6-1/lib/libnccl.so.2 ~/p/m"
    done = isambard.run("bash", "-lc", line, user="alice")
    assert "undefined symbol: ncclCommShrink" in done.stderr
    isambard.sh(f"LD_PRELOAD={own} ~/p/m")


def test_the_plugin_has_its_name_and_needs_libfabric(isambard: Twin) -> None:
    line = f'module load cray-python brics/aws-ofi-nccl/1.8.1 && python3 -c "{NAME}" libnccl-net.so'
    node = isambard.site.hosts[0].name
    assert isambard.sh(line, node=node) == "AWS Libfabric\n"
    plugin = "/tools/brics/apps/aws-ofi-nccl/1.8.1/lib/libnccl-net.so"
    assert "libfabric.so.1 => /opt/cray/libfabric/1.22.0/lib64/libfabric.so.1" in isambard.sh(f"ldd {plugin}")


def test_frontier_s_plugin_is_rccl_s(twin: Start) -> None:
    frontier = ready(twin("frontier"))
    line = f'module load miniforge3 rocm/7.1.1 rccl-net-plugin && python3 -c "{NAME}" $NCCL_NET_PLUGIN && '
    line += f'python3 -c "{VERSION}" librccl.so.1'
    assert frontier.sh(line).splitlines() == ["OFI", "22707 True"]


def test_olivia_s_folders_to_bind_are_there(twin: Start) -> None:
    olivia = ready(twin("olivia"))
    line = "module load NRIS/GPU NCCL && ls $EBROOTLIBFABRIC/lib $EBROOTNCCL/lib $EBROOTAWSMINOFIMINNCCL/lib"
    assert {"libfabric.so.1", "libnccl.so.2", "libnccl-net.so"} <= set(olivia.sh(line).split())
