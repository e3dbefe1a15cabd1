"""The kit of trainers passes what `init plugin` writes, and names the rule that a seeded fault breaks."""

from __future__ import annotations

import pytest

from hpctrain.cli.init import scaffold
from tests.testing.seeded import Fault, Verdicts, judged, seeded

FILES = scaffold.technology("trainer", "oak")
PLUGIN, JOB, TESTS = FILES["hpctrain_oak.py"], FILES["oak_job/__main__.py"], FILES["tests/test_kit.py"]
JOB_FAULTS = {
    "it starts at nothing again": Fault(
        "newest.step + 1 if newest else 1",
        "1",
        "a_second_attempt_goes_on",
        "goes on from the newest whole checkpoint",
    ),
    "a stop is not heard": Fault(
        "if stop:\n        sys.exit(EXIT_SAVED)",
        "if False:\n        pass",
        "a_stop_is_heard_and_saves",
        "ended with 0",
    ),
    "a stop saves nothing": Fault(
        "(stop or step % 10 == 0 or step == steps)",
        "(step == steps)",
        "a_stop_is_heard_and_saves",
        "save, and end",
    ),
    "a stopped run is a finished one": Fault(
        "sys.exit(EXIT_SAVED)", "sys.exit(0)", "a_stop_is_heard_and_saves", "EXIT_SAVED"
    ),
    "the last file is not written": Fault(
        '    (place / "done").touch()\n', "", "it_trains_to_its_end", "it left no whole checkpoint"
    ),
    "nothing is printed": Fault(
        'f"step {step} loss', 'f"at {step}: ', "it_trains_to_its_end", "became a row of progress"
    ),
    "a failure is hidden": Fault(
        'sys.exit(f"{data} is no text")',
        "sys.exit(0)",
        "a_failure_is_no_success",
        "pass its code on",
    ),
    "a cancelled run is a finished one": Fault(
        "sys.exit(EXIT_SAVED)", "sys.exit(0)", "term_ends_it", "a cancelled training is not finished"
    ),
}
PLUGIN_FAULTS = {
    "a pattern has no step": Fault(
        "(?P<step>\\d+) loss", "\\d+ loss", "every_pattern_has_a_step", "no group (?P<step>"
    ),
    "its log is not read": Fault(
        'regex=r"step ', 'regex=r"Step: ', "its_log_becomes_rows", "fits a line of `log`"
    ),
    "checkpoints have other names": Fault(
        'name=r"step-',
        'name=r"checkpoint-',
        "checkpoints_are_found_by_their_names",
        "must fit each whole name",
    ),
    "a cut checkpoint counts": Fault(
        ', complete="done"', "", "a_checkpoint_that_was_cut_is_passed_over", "names no file"
    ),
    "it saves elsewhere": Fault(
        'Var("HPC_CHECKPOINTS")', '"/tmp"', "it_saves_where_a_second_attempt_looks", "HPC_CHECKPOINTS"
    ),
    "a start is dropped": Fault(
        "        ranks=Ranks",
        "        start=run.checkpoint.start,\n        ranks=Ranks",
        "a_start_is_used_or_refused",
        "changes no script, and no problem names it",
    ),
    "its code stays behind": Fault(
        'code=("oak_job",)', 'code=("oak_jobs",)', "its_code_travels", "Train.code names"
    ),
    "a scheduler is known": Fault(
        "        ranks=Ranks",
        '        layer=Layer(wrap=("nice", Var("SLURM_NNODES"))),\n        ranks=Ranks',
        "scheduler_words_stand_where_it_reads_them",
        "words of a scheduler",
    ),
}
FAULTS = JOB_FAULTS | PLUGIN_FAULTS


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the kit says of each faulty plugin, and of the one that is right."""
    folder = tmp_path_factory.mktemp("trainers")
    modules, tests, nodes = {"oak": PLUGIN}, TESTS, []
    jobs = {"oak_job": JOB}
    for number, (title, fault) in enumerate(FAULTS.items()):
        name = f"f{number}"
        source = PLUGIN if title in JOB_FAULTS else seeded(PLUGIN, fault)
        if title in JOB_FAULTS:
            jobs[f"{name}_job"] = seeded(JOB, fault)
            source = source.replace("oak_job", f"{name}_job")
        modules[name] = source.replace("import Layout", "import Layer, Layout")
        tests += f'\n\nclass Test{name}(TestOak):\n    trainer = "{name}"\n'
        nodes.append(f"Test{name}::test_{fault.test}")
    for name, text in jobs.items():
        (folder / "site" / name).mkdir(parents=True)
        (folder / "site" / name / "__init__.py").touch()
        (folder / "site" / name / "__main__.py").write_text(text)
    return judged(folder, "trainer", modules, tests, "TestOak", *nodes)


def test_a_plugin_that_is_right_passes(verdicts: Verdicts) -> None:
    assert not [key for key in verdicts.failed if key[0] == "TestOak"], verdicts.said


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=list(FAULTS))
def test_a_fault_is_named(verdicts: Verdicts, number: int) -> None:
    fault = list(FAULTS.values())[number]
    said = verdicts.failed.get((f"Testf{number}", fault.test))
    assert said is not None, verdicts.said
    assert fault.says in said, said
