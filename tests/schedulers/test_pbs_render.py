"""Directives and argv of a PBS job: each field of a launch is seen, no word becomes another directive."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.model.job import JobFiles
from hpctrain.model.step import Ranks
from hpctrain.model.words import Join, Loc, Var
from hpctrain.testing.golden import difference, write
from hpctrain.testing.plugin import updates
from hpctrain.testing.scripts import NOT_OURS, header_is_inert, written
from hpctrain_plugins.schedulers import pbs, pbs_render
from tests.schedulers import build

BOUND = build.binding(Path("/scratch"))
GOLDEN = Path(__file__).parents[1] / "golden" / "pbs"


def rendered(**fields: object) -> JobFiles:
    step = fields.pop("step", None) or build.step("true", trains=True, **build.many())
    plan = build.plan(step, scheduler="pbs", **fields)  # type: ignore[arg-type]
    return pbs.render_job(step=plan.steps[0], plan=plan, binding=BOUND)


def directives(script: str) -> list[str]:
    """As PBS reads them: from the top, as long as lines are comments."""
    found = []
    for line in script.splitlines()[1:]:
        if not line.startswith("#"):
            break
        if line.startswith("#PBS"):
            found.append(line.removeprefix("#PBS").strip())
    return found


def asked(**fields: object) -> list[str]:
    return directives(rendered(**fields).files["steps/train/job.sh"])


def test_the_layout_of_two_nodes() -> None:
    assert asked(time="26h30m", layers={"pbs": ("-q debug",)}) == [
        "-l select=2:ncpus=4:mpiprocs=2:ngpus=2",
        "-l place=scatter",
        "-l walltime=26:30:00",
        "-o logs/train.log",
        "-j oe",
        "-k doe",
        "-r y",
        "-q debug",
    ]


def test_mail_is_asked_for_by_the_training_alone() -> None:
    assert asked(mail="ada@example.org")[-2:] == ["-m abe", "-M ada@example.org"]
    build_step = rendered(mail="ada@example.org", step=build.step("true", name="env"))
    assert "ada@" not in build_step.files["steps/env/job.sh"]


def test_one_node_may_be_placed_anywhere() -> None:
    step = build.step("true", ranks=Ranks.ONCE, cpus_per_rank=3)
    found = asked(step=step)
    assert found[:2] == ["-l select=1:ncpus=3:mpiprocs=1", "-l walltime=00:02:00"]


def test_memory_and_words_for_every_chunk() -> None:
    step = build.step("true", **build.many(memory_gb=64))
    found = asked(
        step=step, layers={"pbs": (":system=polaris", "-l place=scatter:excl")}, ask=(":cputype=x",)
    )
    assert found[0] == "-l select=2:ncpus=4:mpiprocs=2:ngpus=2:mem=64gb:system=polaris:cputype=x"
    assert [word for word in found if "place" in word] == ["-l place=scatter:excl"]


def test_whole_nodes_are_asked_for_without_their_gpus() -> None:
    assert asked(on=build.cluster(gpu_request="none"))[0] == "-l select=2:ncpus=4:mpiprocs=2"


def test_the_call_has_the_tag_in_name_and_variable() -> None:
    submit = rendered(account="p1", ask=("-P my project", ":a=b")).submit
    assert submit.argv == (
        *("bash", "steps/train/qsub.sh", "train", "LANG,TOY_LICENCE"),
        *("-N", Join("toy-run.train.", Var("HPC_TAG"))),
        *("-v", Join("HPC_SUBMITTED=hpctrain:", Var("HPC_TAG"))),
        Join("-Wdepend=", Var("HPC_AFTER")),
        *("-A", "p1", "-P", "my project"),
    )


def test_a_word_of_the_user_replaces_the_same_of_the_cluster() -> None:
    both = rendered(layers={"pbs": ("-q debug", "-l filesystems=home")}, ask=("-q debug",))
    assert "-q debug" not in directives(both.files["steps/train/job.sh"])
    assert both.submit.argv[-2:] == ("-q", "debug")


def test_what_is_not_strict_goes_through_argv_and_so_does_all_behind_it() -> None:
    late = Join("-l software=", Loc("data", "x"))
    both = rendered(layers={"pbs": ("-q debug", late, "-p 5")})
    assert directives(both.files["steps/train/job.sh"])[-1] == "-q debug"
    assert both.submit.argv[-4:] == ("-l", Join("software=", Loc("data", "x")), "-p", "5")


@given(st.lists(st.text(st.sampled_from("-lq =:aA1,\n\"'$`;#\\")), max_size=4))
def test_no_word_becomes_a_directive(words: list[str]) -> None:
    both = rendered(layers={"pbs": tuple(words)})
    lines = [line for line in both.files["steps/train/job.sh"].splitlines() if line.startswith("#PBS")]
    safe = [word for word in words if pbs_render._SAFE.match(word)]
    ours = 7 - any(word.startswith("-l place=") for word in words)
    assert len(lines) <= ours + len(safe)


def test_a_gpu_of_its_own_for_every_rank() -> None:
    step = build.step("true", **build.many(visible="one"))
    toy = build.cluster()
    for kind, variable in (("cuda", "CUDA_VISIBLE_DEVICES"), ("rocm", "ROCR_VISIBLE_DEVICES")):
        on = build.evolve(toy, hardware=build.evolve(toy.hardware, gpu_kind=kind))
        lines = rendered(step=step, on=on).files["steps/train/rank.sh"].splitlines()
        script = "\n".join(
            [*(line for line in lines if line.startswith(("export HPC_", "IFS", f"export {variable}")))]
        )
        for before, shown in (("", "1"), ("GPU-a,GPU-b", "GPU-b")):
            done = subprocess.run(
                ["bash", "-c", f"{script}\necho ${variable}"],
                env={"PMI_RANK": "3", variable: before},
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout.strip() == shown


def test_ranks_start_by_mpiexec_with_words_for_it_and_one_alone_without() -> None:
    step = build.step("true", **build.many())
    found = rendered(step=step, starter={"pbs": ("--no-vni",)}).files["steps/train/job.sh"]
    assert "hpc_start bash steps/train/mpiexec.sh 2 4 2 --no-vni bash steps/train/rank.sh\n" in found
    alone = rendered(step=build.step("true")).files
    assert "hpc_start bash steps/train/rank.sh\n" in alone["steps/train/job.sh"]
    assert "HPC_RANK=0 HPC_LOCAL_RANK=0" in alone["steps/train/rank.sh"]


def test_only_a_training_is_warned() -> None:
    assert "hpc_notice 3480\n" in rendered(time="1h").files["steps/train/job.sh"]
    assert "hpc_notice 30\n" in rendered(time="1m").files["steps/train/job.sh"]
    assert "hpc_notice" not in rendered(step=build.step("true")).files["steps/train/job.sh"]


def test_the_head_is_the_first_node_with_the_suffix_of_the_fast_network() -> None:
    found = rendered(on=build.cluster(interface_suffix="-hsn0")).files["steps/train/job.sh"]
    assert 'HPC_HEAD=$(hpc_head "-hsn0")' in found


def test_the_scripts_hold_what_the_kit_asks_of_a_clusters(tmp_path: Path) -> None:
    step = build.step("true", trains=True, **build.many(visible="one"))
    files = {path: text for path, text in rendered(step=step).files.items() if path.endswith(".sh")}
    header_is_inert(files)
    paths = [str(path) for path in written(files, tmp_path)]
    for path in paths:
        subprocess.run(["bash", "-n", path], check=True)
    if shutil.which("shellcheck"):
        words = ("--shell=bash", "--severity=warning", f"--exclude={NOT_OURS}")
        subprocess.run(["shellcheck", *words, *paths], check=True)


def test_the_golden_files_still_hold(request: pytest.FixtureRequest) -> None:
    step = build.step("true", trains=True, **build.many(memory_gb=64))
    files = rendered(step=step, time="1h30m", account="p1", layers={"pbs": ("-q debug",)}).files
    texts = {path.removeprefix("steps/train/"): text for path, text in files.items()}
    if updates(request.config):
        write(GOLDEN, texts)
    assert not [line for name, text in texts.items() for line in difference(GOLDEN / name, text)]
