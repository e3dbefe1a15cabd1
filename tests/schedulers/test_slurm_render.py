"""Directives and argv: nothing that a user wrote can become another directive."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.model.job import JobFiles
from hpctrain.model.words import Join, Loc, Var
from hpctrain_plugins.schedulers import slurm, slurm_render
from tests.patience import PATIENCE
from tests.schedulers import build

BOUND = build.binding(Path("/scratch"))


def rendered(**fields: object) -> JobFiles:
    step = fields.pop("step", None) or build.step("true", trains=True, **build.many())
    plan = build.plan(step, **fields)  # type: ignore[arg-type]
    return slurm.render_job(step=plan.steps[0], plan=plan, binding=BOUND)


def directives(script: str) -> list[str]:
    """As Slurm reads them: from the top, as long as lines are comments."""
    found = []
    for line in script.splitlines()[1:]:
        if not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            found.append(line.removeprefix("#SBATCH").strip())
    return found


def test_the_layout_of_two_nodes() -> None:
    script = rendered(time="1h30m", on=build.cluster(gpu_request="gpus-per-node")).files["steps/train/job.sh"]
    assert directives(script) == [
        "--nodes=2",
        "--ntasks-per-node=2",
        "--cpus-per-task=2",
        "--gpus-per-node=2",
        "--signal=B:USR1@120",
        "--time=01:30:00",
        "--output=logs/train.log",
        "--open-mode=append",
        "--requeue",
        "--export=HOME,LANG,LOGNAME,USER,TOY_LICENCE",
        "--partition=batch",
    ]


def test_mail_is_asked_for_by_the_training_alone() -> None:
    found = rendered(mail="ada+hpc@example.org")
    words = [word for word in directives(found.files["steps/train/job.sh"]) if "mail" in word]
    assert words == ["--mail-type=BEGIN,END,FAIL,REQUEUE", "--mail-user=ada+hpc@example.org"]
    assert found.mails
    build_step = rendered(mail="ada@example.org", step=build.step("true", name="env"))
    assert "mail" not in build_step.files["steps/env/job.sh"]


def test_the_call_has_the_tag_in_name_and_comment() -> None:
    submit = rendered(account="p1", ask=("--reservation=x y",)).submit
    assert submit.argv == (
        "sbatch",
        "--parsable",
        Join("--job-name=toy-run.train.", Var("HPC_TAG")),
        Join("--comment=hpctrain:", Var("HPC_TAG")),
        Join("--dependency=", Var("HPC_AFTER")),
        "--kill-on-invalid-dep=yes",
        Join("--exclude=", Var("HPC_AVOID")),
        "--account=p1",
        "--reservation=x y",
        "steps/train/job.sh",
        Var("HPC_TAG"),
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [("gres", ["--gres=gpu:2"]), ("none", []), ("gpus-per-node", ["--gpus-per-node=2"])],
)
def test_gpus_are_asked_for_as_the_site_documents(request_: str, expected: list[str]) -> None:
    script = rendered(on=build.cluster(gpu_request=request_)).files["steps/train/job.sh"]
    assert [d for d in directives(script) if "gpu" in d] == expected


def test_binding_memory_and_starter_words() -> None:
    step = build.step("true", **build.many(memory_gb=64, visible="one", bind="closest"))
    found = rendered(step=step, starter={"slurm": ("--environment=x",)}).files["steps/train/job.sh"]
    assert "#SBATCH --mem=64G" in found
    started = (
        "hpc_start srun --export=ALL --nodes=2 --ntasks=4 --ntasks-per-node=2 --cpus-per-task=2"
        " --kill-on-bad-exit=1 --wait=600 --gpus-per-task=1 --gpu-bind=closest --environment=x"
        " bash steps/train/rank.sh"
    )
    assert started in found


def test_only_training_hears_a_signal_before_its_end() -> None:
    script = rendered(step=build.step("true", minutes=30)).files["steps/train/job.sh"]
    assert not [d for d in directives(script) if "signal" in d]


def test_the_users_words_win_over_a_layers() -> None:
    asked = {"slurm": ("--constraint=a", "--qos=low")}
    found = rendered(layers=asked, ask=("--qos=high",))
    assert directives(found.files["steps/train/job.sh"])[-2:] == ["--constraint=a", "--qos=low"]
    assert found.submit.argv[-3:-1] == ("--qos=high", "steps/train/job.sh")


def test_a_word_bound_late_goes_through_argv_with_all_that_follow() -> None:
    late = Join("--bb=", Loc("data", "x"))
    found = rendered(layers={"slurm": ("--exclusive", late, "--qos=low")})
    assert "--qos=low" not in directives(found.files["steps/train/job.sh"])
    assert found.submit.argv[-4:-2] == (late, "--qos=low")


HOSTILE = st.one_of(
    st.text(max_size=30).filter(lambda t: "\0" not in t),
    st.sampled_from(
        ["--qos=a\n#SBATCH --account=b", "--x='$(id)'", "-A b", "--a=b --c=d", "--q=\u2028", "--w=x\r"]
    ),
    st.from_regex(r"--[a-z]{1,8}(=[a-zA-Z0-9.,:-]{1,8})?", fullmatch=True),
)


@given(st.lists(HOSTILE, max_size=4, unique=True))
def test_what_slurm_reads_is_what_was_asked_and_nothing_else(words: list[str]) -> None:
    found = rendered(layers={"slurm": tuple(words)})
    read = directives(found.files["steps/train/job.sh"])
    lines, argv = slurm_render.split(tuple(words))
    base = directives(rendered().files["steps/train/job.sh"])
    assert read == base + [word for word in lines if word not in base]
    assert [w for w in found.submit.argv if w in argv] == [w for w in argv if w not in base]
    assert tuple(lines) + tuple(argv) == tuple(words)


@given(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=40))
def test_a_runs_name_stays_one_plain_word(name: str) -> None:
    word = rendered(name=name).submit.argv[2]
    assert isinstance(word, Join)
    (text, tag) = word.parts
    assert tag == Var("HPC_TAG")
    assert isinstance(text, str)
    assert text.isascii()
    assert not set(text.removeprefix("--job-name=")) & set(" \n\t'\"$`|;%/\\")


def test_scripts_parse(tmp_path: Path) -> None:
    for path, text in rendered().files.items():
        script = tmp_path / Path(path).name
        script.write_text(text)
        done = subprocess.run(
            ("bash", "-n", str(script)), capture_output=True, text=True, timeout=10 * PATIENCE
        )
        assert (done.returncode, done.stderr) == (0, "")
