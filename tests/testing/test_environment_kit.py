"""The kit of environments passes what `init plugin` writes, and names the rule that a seeded fault breaks."""

from __future__ import annotations

import pytest

from hpctrain.cli.init import scaffold
from tests.testing.seeded import Fault, Verdicts, judged, seeded

ARCHIVE = scaffold.technology("environment", "NAME")["hpctrain_NAME.py"]
CONTAINER = """
from hpctrain.plugin import Bind, Cmd, EnvVar, How, Join, Layer, Loc, Var, hookimpl

HPCTRAIN_API = 1


@hookimpl
def build_env():
    return []


@hookimpl
def enter_env(binds):
    volumes = [volume(bind) for bind in binds]
    room = (Join("--workdir=", Var("HPC_RUN")), "--env=HPC_*", "--env=WORK")
    env = (
        EnvVar(name="PYTHONNOUSERSITE", value="1", why="packages in ~/.local would win"),
        EnvVar(name="PYTHONHOME", how=How.UNSET, why="the node's Python is another"),
    )
    return Layer(env=env, wrap=("podman", "run", "--rm", *room, *volumes, "quay.io/site/torch:1"))


def volume(bind):
    flags = (":ro",) if bind.readonly else ()
    return Join("--volume=", bind.source, ":", bind.target or bind.source, *flags)
"""
SUBJECTS = {"archive": ARCHIVE, "container": CONTAINER}
FAULTS = {
    "the folder is not in front of PATH": Fault(
        "How.PREPEND", "How.DEFAULT", "a_command_enters_the_environment", "put its bin in front of PATH"
    ),
    "another Python's library is let in": Fault(
        "How.UNSET, why", "How.DEFAULT, why", "another_python_is_kept_out", "another Python's"
    ),
    "~/.local is let in": Fault(
        'value="1"', 'value=""', "another_python_is_kept_out", "packages in ~/.local"
    ),
    "the home is needed": Fault(
        "    return Layer(\n",
        '    return Layer(\n        task=(Cmd.of("test", "-n", Var("HOME")),),\n',
        "no_home_is_needed",
        "without HOME",
    ),
    "a variable of the login is needed": Fault(
        'value="1"', 'value=Var("SCRATCH")', "a_clean_environment_is_enough", "no other variable of the user"
    ),
    "a path is not quoted": Fault(
        "    return Layer(\n",
        '    return Layer(\n        task=(Raw("cd $HPC_RUN"),),\n',
        "folders_may_have_odd_names",
        "text in Raw is not",
    ),
    "the architecture is left out": Fault(
        "inputs=attrs.asdict(options), arch=arch",
        'inputs=attrs.asdict(options), arch="any"',
        "another_architecture_is_another_artifact",
        "makes one NAME for x86_64 and aarch64",
    ),
    "it is built beside $WORK": Fault(
        'Var("WORK")',
        '"/opt/env"',
        "an_artifact_is_written_where_core_publishes_it",
        'none of its commands names Var("WORK")',
    ),
    "another one is entered": Fault(
        "unpacked(run.environment.options, cluster.arch).loc",
        'unpacked(Options(url="https://other"), cluster.arch).loc',
        "what_is_entered_is_what_is_built",
        "use one Artifact for both",
    ),
    "the clock is read": Fault(
        "    packed = archive(options)\n",
        '    packed = archive(options)\n    open("/etc/hostname").close()\n',
        "planning_touches_nothing",
        "planning must not touch the world",
    ),
    "a scheduler is known": Fault(
        'value="1"',
        'value=Var("SLURM_PROCID")',
        "scheduler_words_stand_where_it_reads_them",
        "words of a scheduler",
    ),
    "the way in is missing": Fault(
        "@hookimpl\ndef enter_env",
        "def enter_env",
        "the_plugin_loads_and_answers_its_hooks",
        "must answer enter_env",
    ),
    "a container is not handed the job": Fault(
        '"--env=HPC_*", ', "", "a_clean_environment_is_enough", "HPC_RUN: unbound variable", "container"
    ),
    "a container starts somewhere": Fault(
        'Join("--workdir=", Var("HPC_RUN")), ',
        "",
        "a_command_enters_the_environment",
        "steps/train/task.sh",
        "container",
    ),
    "a container sees no tokens": Fault(
        "for bind in binds]",
        'for bind in binds if bind.source != Var("HPC_SECRETS")]',
        "a_container_sees_what_its_scripts_name",
        "no bind covers ${HPC_SECRETS}",
        "container",
    ),
    "a token stands in an argv": Fault(
        '"--env=WORK")',
        '"--env=WORK", Raw(\'"--env=T=$(cat "${HPC_SECRETS:-/none}"/huggingface || :)"\'))',
        "a_token_reaches_the_task_and_nobody_else",
        "engine.txt",
        "container",
    ),
    "a failure is hidden": Fault(
        'wrap=("podman"',
        "wrap=('bash', '-c', '\"$@\" || true', '_', 'podman'",
        "a_failure_inside_is_a_failure_outside",
        "exec the command, hide no code",
        "container",
    ),
}
CLASS = """
class Test{name}(EnvironmentConformance):
    environment, hands_on = "{name}", False
    options = {options}
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the kit says of each faulty plugin, and of those that are right."""
    modules = {subject: text.replace("NAME", subject) for subject, text in SUBJECTS.items()}
    nodes = []
    for number, fault in enumerate(FAULTS.values()):
        name = f"f{number}"
        text = seeded(SUBJECTS[fault.subject or "archive"], fault)
        modules[name] = text.replace("NAME", name).replace("hookimpl\n\nHPC", "hookimpl, Raw\n\nHPC")
        nodes.append(f"Test{name}::test_{fault.test}")
    tests = "from hpctrain.testing import EnvironmentConformance\n"
    for name, text in modules.items():
        options = '{"url": "https://example.org/env.tar.gz"}' if "class Options" in text else "{}"
        tests += CLASS.format(name=name, options=options)
    folder = tmp_path_factory.mktemp("environments")
    return judged(folder, "environment", modules, tests, *(f"Test{subject}" for subject in SUBJECTS), *nodes)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_plugin_that_is_right_passes(verdicts: Verdicts, subject: str) -> None:
    wrong = [key for key in verdicts.failed if key[0] == f"Test{subject}"]
    # A plugin without keys of its own has no class Options to refuse one.
    assert not [key for key in wrong if key[1] != "an_unknown_key_is_refused_by_its_name"], verdicts.said


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=list(FAULTS))
def test_a_fault_is_named(verdicts: Verdicts, number: int) -> None:
    fault = list(FAULTS.values())[number]
    said = verdicts.failed.get((f"Testf{number}", fault.test))
    assert said is not None, verdicts.said
    assert fault.says.replace("NAME", f"f{number}") in said, said
