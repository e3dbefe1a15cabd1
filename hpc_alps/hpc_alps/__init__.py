"""Clariden on Alps as hpctrain sees it: facts in `cluster.toml`, and what no table of it can say."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import Cluster, Problem, Rule, RunSpec, hookimpl

HPCTRAIN_API = 1


@hookimpl
def check_run(run: RunSpec, cluster: Cluster) -> Iterable[Problem]:
    """Words that the site refuses at submission."""
    fact = cluster.facts["memory"]
    for number, word in enumerate(run.resources.ask.get(cluster.scheduler, ())):
        if word.replace(" ", "=") == "--mem=0":
            source = cluster.source_of(fact["source"])
            yield Problem(
                code="memory-limit",
                message=f"{cluster.name} does not allow {word}, all memory of a node",
                where=f"resources.ask.{cluster.scheduler}[{number}]",
                notes=(f"{source.title}, checked {source.checked}",) if source else (),
                hint=f"[resources]\nmemory_gb = {fact['memory_gb']}      (the default)",
            )


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures that the users of this machine met."""
    return RULES


RULES = (
    Rule(
        name="engine-start",
        pattern=r"pyxis: couldn't start container|spank_pyxis\.so: task_init\(\) failed",
        cause="the Container Engine could not start the image on a node: one of its hooks failed",
        fix="the hook's own line stands above; Alpine images, and images older than the hooks, break them",
    ),
    Rule(
        name="engine-old-image",
        pattern=r"libcudart\.so could not be found",
        cause="the image is older than the network libraries that the engine's hook brings",
        fix='[environment.edf.annotations]\n"com.hooks.netstack.source" = "host"\n'
        '"com.hooks.aws_ofi_nccl.variant" = "cuda12"      (its own CUDA; or a newer image)',
        sure="certain",
    ),
)
