"""build, stage, exec, shell and run --here on this computer."""

from __future__ import annotations

import signal

from tests.e2e.product import Product, small
from tests.e2e.terminal import typed
from tests.patience import PATIENCE, wait_for

ASSETS = """
[assets]
thing = { path = "thing.txt" }
made  = { command = ["bash", "-c", "sleep 0.1; echo made > $WORK"] }
"""


def test_stage_brings_the_assets_once(here: Product) -> None:
    here.write("hello\n", "thing.txt")
    here.write(small("cat {assets.thing}", assets=ASSETS))
    first = here("stage")
    assert first.stdout == "small-stage/1\n"
    again = here.json("stage")
    assert again["run"] is None
    assert set(again["exists"]) == {"thing", "made"}
    assert not (here.home / ".local/share/hpctrain/runs/small").exists()


def test_build_of_nothing_and_of_an_unknown_package(here: Product) -> None:
    here.write(small("true").replace('use = ""\n', 'use = ""\npackages = ["numpy==2.1.0"]\n', 1))
    assert here("build").stdout == "nothing is needed\n"
    said = here("build", "--rebuild", "nunpy", code=2).stderr
    assert "small has no package 'nunpy'" in said
    assert "help: hpctrain build --rebuild numpy" in said


def test_a_rebuild_counts_up_and_a_new_lock_keeps_it(here: Product) -> None:
    path = here.write(small("true").replace('use = ""\n', 'use = ""\npackages = ["numpy==2.1.0"]\n', 1))
    lock = path.with_name("run.lock.toml")
    here("build", "--rebuild", "numpy")
    here("build", "--rebuild", "NumPy")
    assert '"rebuild:numpy" = "2"' in lock.read_text()
    here("lock")
    assert '"rebuild:numpy" = "2"' in lock.read_text()


def test_exec_ends_as_its_command_ends(here: Product) -> None:
    here.write(small("true", env="\n[env]\nAWKWARD = \"a 'b', c\"\n"))
    (here.folder / "below").mkdir()
    inside = Product(here.home, here.folder / "below")
    done = inside("exec", "--", "bash", "-c", 'pwd; echo "$AWKWARD"; printf torn; exit 7', code=7)
    assert done.stdout == f"{here.folder}/below\na 'b', c\ntorn\n"
    assert here("exec", code=2).stderr == (
        "error[usage]: the command follows --\nhelp: hpctrain exec -- nvidia-smi\n"
    )
    assert "help: --time 30m" in here("exec", "--time", "soon", "--", "true", code=2).stderr


def test_an_interrupt_cancels_the_command(here: Product) -> None:
    here.write(small("true"))
    going = here.start("exec", "--", "bash", "-c", "echo began; exec sleep 300")
    assert going.stdout is not None
    assert going.stdout.readline() == "began\n"
    going.send_signal(signal.SIGINT)
    going.communicate(timeout=30 * PATIENCE)
    assert going.returncode == 130
    wait_for("the end of the job", lambda: here.state("small-exec") == "cancelled", 20)


def test_a_shell_has_the_runs_variables_and_ends_its_job(here: Product) -> None:
    here.write(small("true", env='\n[env]\nMINE = "yes"\n'))
    lines = ['echo "[$MINE] in $HPC_STEP"; pwd', "exit 3"]
    code, shown = typed(here.argv("shell"), lines, cwd=str(here.folder), env=here.environment)
    assert code == 3, shown
    assert "[yes] in shell" in shown
    assert str(here.folder) in shown
    assert here.state("small-shell") == "done"


def test_a_shell_whose_job_goes_says_so(here: Product) -> None:
    here.write(small("true"))
    lines = [
        "kill $(cat $HPC_RUN/steps/shell/../../../../../../../state/hpctrain/jobs/$HPC_JOB.job | head -1)"
    ]
    code, shown = typed(here.argv("shell"), lines, cwd=str(here.folder), env=here.environment)
    assert code == 8, shown
    assert "the allocation ended under the shell" in shown


def test_a_shell_without_a_terminal_is_refused(here: Product) -> None:
    here.write(small("true"))
    assert "a shell needs a terminal" in here("shell", code=2).stderr


def test_run_here_submits_no_job(here: Product) -> None:
    here.write("hello\n", "thing.txt")
    here.write(small("cat {assets.thing}", assets=ASSETS))
    assert here("run", "--here").stdout == "small/1\n"
    steps = here.json("status", "small")["steps"]
    assert [(s["state"], s["job"]) for s in steps] == [("done", None)] * 3
    assert here("logs", "small").stdout == "hello\n"
    assert "hpctrain submit" in here("run", code=2).stderr


def test_diagnose_shows_the_first_error_that_no_rule_knows(here: Product) -> None:
    here.write(small("echo fine; echo 'ValueError: 7 is odd' >&2; exit 3"))
    here("submit")
    here("logs", "-f", code=8)
    said = here("diagnose").stdout
    assert "step train, its commands failed, exit code 3" in said
    assert "no rule knows this" in said
    assert "ValueError: 7 is odd" in said
    (step,) = here.json("diagnose")["steps"]
    assert (step["step"], step["exit_code"], step["causes"]) == ("train", 3, [])
    assert step["first_error"]["text"] == "ValueError: 7 is odd"
    here.write(small("true"))
    here("submit")
    here("logs", "-f")
    assert "no step failed" in here("diagnose").stdout
