"""The table of README.md: what is real on each twin, what a stand-in, what absent."""

from __future__ import annotations

from tests.twin import site_file

EVERYWHERE = site_file.Honest(
    real=(
        "Slurm 24.11 with munge, and where a test wants it slurmdbd: accounts, QoS and their limits",
        "jobs of ordinary users on two nodes",
        "partitions, node names, features and limits from the facts",
        "networks with and without internet",
        "an OCI registry (Debian's), a git host and a package index, under TLS and real names",
        "quotas in bytes and inodes, of users and of the project, where the facts have them",
    ),
    stand_in=(
        "cores and memory of nodes: Slurm believes the facts",
        "storage: memory, with the site's paths and owners",
        "mamba-ssm, causal-conv1d and flash-attn: a few lines of C that are built like them",
        "torch of the index: no tensors, an NCCL that it loads as the real one does, and torchrun",
        "the registry's images: busybox, or Python with torch (a stand-in); arm64 ones say so and are x86_64",
        "the hub: snapshots, uploads by git-lfs, branches and tags, under its real name",
    ),
    absent=(
        "GPUs, fabrics and speed",
        "cgroups: Slurm looks every second whether a job has too much memory, and calls it failed",
        "purges by themselves, backups",
    ),
)


def table() -> str:
    """One row for all, one for each twin."""
    rows = [("all", EVERYWHERE), *((name, site_file.load(name).overlay.honest) for name in site_file.names())]
    lines = ["| twin | real | stand-in | absent |", "|---|---|---|---|"]
    for name, said in rows:
        cells = ("; ".join(part) for part in (said.real, said.stand_in, said.absent))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
