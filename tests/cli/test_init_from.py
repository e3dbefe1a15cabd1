"""A new cluster's facts are filled in from what its programs print; each says where it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.cli.init import printed_facts, scaffold
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.runfile.facts import load_cluster
from tests.e2e.product import Product

HERE = Path(__file__).parent / "outputs"
"""Of a real Slurm 24.11, that of a twin of Leonardo with two nodes; `nodes.txt` without the kernel's line."""
NVIDIA = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM-64GB           On  |   00000000:1D:00.0 Off |                    0 |
| N/A   42C    P0             62W /  470W |       4MiB /  65536MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM-64GB           On  |   00000000:56:00.0 Off |                    0 |
| N/A   41C    P0             60W /  470W |       4MiB /  65536MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
"""Written for this test in the form of nvidia-smi 550, as are the others below: no machine printed them."""
NVIDIA_LIST = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
AMD = """\
============================ ROCm System Management Interface ============================
====================================== Product Info ======================================
GPU[0]\t\t: Card Series: \t\tAMD Instinct MI250X
GPU[1]\t\t: Card Series: \t\tAMD Instinct MI250X
================================== Memory Usage (Bytes) ==================================
GPU[0]\t\t: VRAM Total Memory (B): 68702699520
GPU[1]\t\t: VRAM Total Memory (B): 68702699520
==================================== End of ROCm SMI Log =================================
"""


def written(tmp_path: Path, *paths: Path) -> tuple[Cluster, str]:
    """The facts of a new cluster from these outputs, and their text."""
    folder = tmp_path / "hpc_oak"
    folder.mkdir(exist_ok=True)
    text = printed_facts.cluster_toml("oak", printed_facts.read(paths))
    (folder / "cluster.toml").write_text(text)
    return load_cluster(folder), text


def lines(text: str, key: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{key} = ")]


def test_what_slurm_says_of_queues_nodes_and_accounts(tmp_path: Path) -> None:
    facts, text = written(tmp_path, HERE)
    limits = {q.name: (q.max_nodes, q.max_time and q.max_time.short, q.auto) for q in facts.queue}
    assert limits == {
        "lrd_all_serial": (1, "4h", False),
        "boost_usr_prod": (256, "4d", True),
        "boost_fua_prod": (2, "1d", True),
    }
    assert facts.queue_named("boost_usr_prod").ask == {"slurm": ("--partition=boost_usr_prod",)}  # type: ignore[union-attr]
    hardware = facts.hardware
    assert (hardware.cores_per_node, hardware.memory_gb, hardware.gpus_per_node, hardware.nodes) == (
        32, 482, 4, 2,
    )  # fmt: skip
    assert facts.queue[0].hardware is not None
    assert facts.queue[0].hardware.gpus_per_node == 0
    assert (facts.scheduler, facts.arch, facts.title) == ("slurm", "x86_64", "leonardo")
    assert (facts.launch.cpus_per_gpu, facts.policy.account) == (8, "optional")
    assert "#   cuda/12.6" in text


def test_each_value_says_where_it_was_read_or_that_it_is_a_guess(tmp_path: Path) -> None:
    facts, text = written(tmp_path, HERE)
    assert lines(text, "memory_gb") == ["memory_gb = 482  # read in nodes.txt"]
    assert lines(text, "cores_per_node") == ["cores_per_node = 32  # read in nodes.txt; lscpu.txt says 2"]
    assert lines(text, "max_nodes")[1] == "max_nodes = 256  # read in partitions.txt; sinfo.txt says 2"
    assert lines(text, "gpu") == ['gpu = "GPU"  # a guess']
    read = facts.source_of("outputs")
    assert read is not None
    assert (read.sure, "nodes.txt" in read.title) == ("measured", True)
    assert {table.source for table in facts.storage.values()} == {"guess"}
    assert facts.source_of("guess").sure == "inferred"  # type: ignore[union-attr]


def test_sinfo_alone_tells_of_queues(tmp_path: Path) -> None:
    facts, _ = written(tmp_path, HERE / "sinfo.txt")
    assert [(q.name, q.max_nodes) for q in facts.queue] == [
        ("boost_usr_prod", 2),
        ("boost_fua_prod", 2),
        ("lrd_all_serial", 1),
    ]


@pytest.mark.parametrize(
    ("text", "gpu", "kind", "memory"),
    [
        (NVIDIA, "NVIDIA A100-SXM-64GB", "cuda", 64),
        (NVIDIA_LIST, "NVIDIA H100 80GB HBM3", "cuda", 0),
        (AMD, "AMD Instinct MI250X", "rocm", 64),
    ],
)
def test_what_the_vendors_programs_say_of_gpus(
    tmp_path: Path, text: str, gpu: str, kind: str, memory: int
) -> None:
    (tmp_path / "smi.txt").write_text(text)
    hardware = written(tmp_path, HERE / "sinfo.txt", tmp_path / "smi.txt")[0].hardware
    assert (hardware.gpu, hardware.gpu_kind, hardware.gpus_per_node, hardware.gpu_memory_gb) == (
        gpu, kind, 2, memory,
    )  # fmt: skip


HOSTILE = """\
PartitionName=odd
   State=UP MaxTime=9-99:99:99 MaxNodes=many MinNodes=UNLIMITED AllowAccounts=ml"]
PartitionName=a"\\nname="x
   State=UP
PartitionName=cut
   State=UP MaxTi"""


def test_outputs_that_are_cut_or_hostile_make_no_broken_file(tmp_path: Path) -> None:
    (tmp_path / "odd\nname.txt").write_text(HOSTILE)
    (tmp_path / "nodes.txt").write_bytes(b"NodeName=n1 Gres=gpu:mi300a:4 CPUTot= RealMemory=x\n\xff\xfe")
    facts, _ = written(tmp_path, tmp_path / "odd\nname.txt", tmp_path / "nodes.txt")
    assert [(q.name, q.max_nodes, q.max_time, q.note) for q in facts.queue] == [
        ("odd", None, None, 'AllowAccounts=ml"]'),
        ("cut", None, None, ""),
    ]
    assert (facts.hardware.gpu, facts.hardware.gpu_kind) == ("mi300a", "rocm")


def test_the_command_names_what_it_could_not_read(here: Product) -> None:
    here.write("Hello\n", "hello.txt")
    said = here("init", "plugin", "oak", "--from", str(HERE), "--from", "hello.txt").stderr
    assert "warning[unknown-output]: nothing was read in hello.txt" in said
    assert "# read in nodes.txt" in (here.folder / "hpctrain-oak/hpc_oak/cluster.toml").read_text()


def test_what_cannot_be_filled_from_is_refused_and_nothing_written(here: Product) -> None:
    here.write("Hello\n", "hello.txt")
    said = here("init", "plugin", "oak", "--from", "hello.txt", code=2).stderr
    assert "error[no-outputs]: no installed scheduler's plugin reads any of these outputs: hello.txt" in said
    assert "nowhere does not exist" in here("init", "plugin", "oak", "--from", "nowhere", code=2).stderr
    both = here("init", "plugin", "oak", "--from", "hello.txt", "--like", "alps", code=2).stderr
    assert "help: hpctrain init plugin oak --from hello.txt" in both
    assert (
        "--kind trainer" in here("init", "plugin", "oak", "--kind", "trainer", "--from", ".", code=2).stderr
    )
    assert not (here.folder / "hpctrain-oak").exists()


def test_other_scaffolds_are_as_they_were() -> None:
    assert (
        scaffold.facts_like("oak", "local").splitlines()[0].startswith("# oak: every value below is local's")
    )
    with pytest.raises(ConfigError, match='no cluster "nowhere"'):
        scaffold.facts_like("oak", "nowhere")
