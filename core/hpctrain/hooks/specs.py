"""The hooks. Their names and arguments are the API that plugins stand on; nothing else lives here.

PURE hooks return data and touch nothing: no file, clock, environment, network or subprocess. They may take
fewer arguments than are offered. ACTING hooks get `tools`, core's only way to start a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from hpctrain.errors import Problem
    from hpctrain.model.cluster import Cluster
    from hpctrain.model.job import Allocation, Event, Job, JobFiles, JobState, Rule
    from hpctrain.model.layer import Bind, Layer
    from hpctrain.model.plan import Binding, Plan, PlannedStep, Survey
    from hpctrain.model.run import Asset, Code, RunSpec
    from hpctrain.model.step import Launch, Pin, Step
    from hpctrain.model.tools import ProgramRunner, Tell
    from hpctrain.model.train import Configs, Layout, Train
    from hpctrain.model.words import Word

PROJECT = "hpctrain"
hookspec = pluggy.HookspecMarker(PROJECT)


@hookspec
def pin(
    run: RunSpec, cluster: Cluster, binding: Binding, pins: tuple[Pin, ...], tools: ProgramRunner
) -> Iterable[Pin]:
    """Make moving names fixed: versions, revisions, digests.

    Called by `hpctrain lock`, the only phase with network. ACTS. Every plugin's answer counts.
    `pins` are those of the earlier lock, stale or not; `binding` says where steps left what it reads.
    Answer: one Pin for each name this plugin understands; raise ConfigError when a name does not exist.

    Example::

        @hookimpl
        def pin(run: RunSpec, cluster: Cluster, tools: ProgramRunner) -> list[Pin]:
            return [Pin("trl", "pypi", tools.run(("pip", "index", "versions", "trl")).out.split()[1])]
    Since: 0.1
    """


@hookspec(firstresult=True)
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Iterable[Step] | None:
    """The steps that make the run's environment; the last one makes it.

    Called while planning. PURE. The first plugin that answers wins; wrappers are welcome.
    Answer: steps in order, each with what it needs and makes; () when nothing is ever built.

    Example::

        @hookimpl
        def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> list[Step]:
            made = Artifact(name="venv", role="env", inputs={"python": "3.11"}, arch=cluster.arch, pins=pins)
            install = Cmd.of("python3.11", "-m", "venv", Var("WORK"))
            return [Step(name="env", commands=(install,), needs=frozenset({Need.TARGET}), makes=made)]
    Since: 0.1
    """


@hookspec(firstresult=True)
def prepare_data(
    name: str, asset: Asset, run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], assets: Mapping[str, Word]
) -> Iterable[Step] | None:
    """The steps that bring one asset to this cluster; the last one makes it.

    Called while planning, once for each of `[assets]`. PURE. First answer wins; None declines.
    `assets` maps those that stand before it in the run file to the Loc where each lies.
    Answer: steps; a network step runs outside the environment (`inside=False`).

    Example::

        @hookimpl
        def prepare_data(name: str, asset: Asset) -> list[Step] | None:
            if not asset.url:
                return None
            made = Artifact(name="file", role="assets", inputs={"url": asset.url}, arch="any")
            get = Cmd.of("curl", "--fail", "-o", Var("WORK"), asset.url)
            return [Step(name=name, commands=(get,), needs=frozenset({Need.NETWORK}), makes=made)]
    Since: 0.1
    """


@hookspec(firstresult=True)
def convert_checkpoint(
    source: str, target: str, checkpoint: Word, layout: Layout, run: RunSpec, cluster: Cluster
) -> Iterable[Step] | None:
    """The steps from checkpoint format `source` to `target`, or None when you cannot.

    Called while planning `[checkpoint] export`. PURE. First answer wins.
    `checkpoint` is a path; its last part may be `newest`, which the job resolves by `layout`.

    Example::

        @hookimpl
        def convert_checkpoint(source: str, target: str, checkpoint: Word) -> list[Step] | None:
            step = Step(name="export", commands=(Cmd.of("neox2hf", checkpoint, Var("WORK")),))
            return [step] if (source, target) == ("neox", "hf") else None
    Since: 0.1
    """


@hookspec(firstresult=True)
def checkout(run: RunSpec, cluster: Cluster) -> Code | None:
    """The repository that a trainer's program is in, at a full commit, where the run file has no `[code]`.

    Called while planning. PURE. It lies in `train_command`'s assets as `code`, like one of the run file.

    Example::

        @hookimpl
        def checkout(run: RunSpec) -> Code:
            return Code(git="https://github.com/org/trainer", rev="0123456789" * 4)
    Since: 0.1
    """


@hookspec(firstresult=True)
def train_command(
    run: RunSpec, cluster: Cluster, assets: Mapping[str, Word], pins: tuple[Pin, ...], configs: Configs
) -> Train | None:
    """The command that every rank runs, with how to read its progress and its checkpoints.

    Called while planning. PURE. `assets` maps each asset's name to the Loc where it lies; `code` is the run's
    own copy of it, in which programs may write, and `.code` what all runs share. `configs` maps an asset to
    the `config.json` of its model (`checkpoint.start`: of the start), where known: for `numbers` alone.
    Options of the trainer are `run.train.options`, an instance of the module's `Options` class.

    Example::

        @hookimpl
        def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word]) -> Train:
            return Train(argv=("python", "train.py", Join("--data=", assets["dataset"])))
    Since: 0.1
    """


@hookspec(firstresult=True)
def launch(run: RunSpec, cluster: Cluster, train: Train) -> Launch | None:
    """How the training ranks are laid out.

    Called while planning. PURE. Core answers from the facts; a cluster or site may wrap or replace it.

    Example::

        @hookimpl(wrapper=True)
        def launch(run: RunSpec, cluster: Cluster, train: Train) -> Generator[None, Launch, Launch]:
            return attrs.evolve((yield), rank_prefix=("numactl", "--localalloc"))
    Since: 0.1
    """


@hookspec
def configure_network(run: RunSpec, cluster: Cluster, launch: Launch) -> Layer | None:
    """What the fabric needs, for this number of nodes; it reaches the training step alone.

    Called while planning. PURE. Every answer counts and they are folded; wrappers are refused, because
    each variable is attributed to who set it. Constant variables belong in cluster.toml.

    Example::

        @hookimpl
        def configure_network(run: RunSpec, cluster: Cluster, launch: Launch) -> Layer | None:
            fabric = EnvVar(name="NCCL_NET", value="AWS Libfabric", why="else TCP")
            return Layer(env=(fabric,)) if launch.nodes > 1 else None
    Since: 0.1
    """


@hookspec
def surround(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
    """What goes around one step, beside its environment and the network.

    Called while planning, once for every placed step: builds and downloads too. PURE. Every answer
    counts and they are folded; wrappers are refused, because each variable is attributed to who set
    it. `step.launch`, `step.place`, `step.inside` and `step.trains` say which step it is.

    Example::

        @hookimpl
        def surround(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
            folder = template("/tmp/miopen-${HPC_JOB}")
            why = "MIOpen's database breaks on a shared disk"
            cache = EnvVar(name="MIOPEN_USER_DB_PATH", value=folder, at=Scope.NODE, why=why)
            return Layer(env=(cache,), node=(Cmd.of("mkdir", "-p", folder),)) if step.trains else None
    Since: 0.1
    """


@hookspec(firstresult=True)
def enter_env(
    run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], launch: Launch, binds: tuple[Bind, ...]
) -> Layer | None:
    """How a command gets into the environment that `build_env` made.

    Called while planning, for each step that runs inside. PURE. `binds` are the folders that the step's
    container must see: the run's directory, that of the step's tokens where it reads one, the storage roles
    that it uses, and what the network and the trainer bring. A prefix needs none of them.

    Example::

        @hookimpl
        def enter_env(run: RunSpec, cluster: Cluster) -> Layer:
            where = Loc("env", "mine/bin")
            return Layer(env=(EnvVar(name="PATH", value=where, how=How.PREPEND, why="the run's Python"),))
    Since: 0.1
    """


@hookspec
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """What is wrong with this plan, all at once.

    Called at the end of planning. PURE. Every answer counts; fatal problems stop before anything is written.

    Example::

        @hookimpl
        def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
            if run.resources.nodes and run.resources.nodes > 1 and not run.checkpoint.every:
                yield Problem(code="no-save", message="a lost node loses all", where="checkpoint.every")
    Since: 0.1
    """


@hookspec
def check_config(files: Mapping[str, str], gpus: int, nodes: int) -> Iterable[Problem]:
    """What is wrong with a trainer's own configuration files, without a run.

    Called by `hpctrain check --trainer NAME FILE`. PURE. `files` maps each name to its text, in the order
    given; `nodes` is 0 where nobody said how many.

    Example::

        @hookimpl
        def check_config(files: Mapping[str, str], gpus: int) -> Iterable[Problem]:
            for name, text in files.items():
                if f"world_size: {gpus}" not in text:
                    yield Problem(code="world", message="the file is for another number of GPUs", where=name)
    Since: 0.1
    """


@hookspec
def check_files(run: RunSpec, files: Mapping[str, Path], tell: Tell) -> Iterable[Problem]:
    """What is wrong with the data that is on this machine already, before anything is queued.

    Called by `check` and before a run is submitted or ejected. ACTS: it reads `files`, which maps the assets
    that are here to where they lie. `tell(title, done, total)` shows how far it is.

    Example::

        @hookimpl
        def check_files(run: RunSpec, files: Mapping[str, Path]) -> Iterable[Problem]:
            if "dataset" in files and not files["dataset"].stat().st_size:
                yield Problem(code="data-empty", message="there are no rows", where="assets.dataset")
    Since: 0.1
    """


@hookspec
def check_submit(plan: Plan, survey: Survey) -> Iterable[Problem]:
    """What speaks against submitting now, judged on live data that core read.

    Called before anything is submitted. PURE on `survey`.

    Example::

        @hookimpl
        def check_submit(plan: Plan, survey: Survey) -> Iterable[Problem]:
            if len(survey.jobs) >= 100:
                yield Problem(code="too-many-jobs", message="100 jobs of yours are queued; the site's limit")
    Since: 0.1
    """


@hookspec(firstresult=True)
def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles | None:
    """A step as this scheduler's script, and the command that submits it.

    Called while rendering. PURE. `hpctrain.render.scripts` writes what all schedulers share.

    Example::

        @hookimpl
        def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
            shape = Shape(
                header=("#SBATCH --nodes=1",),
                job=("export HPC_JOB=$SLURM_JOB_ID HPC_NODES=1 HPC_GPUS=0 HPC_HEAD=127.0.0.1 HPC_ATTEMPT=0",),
                rank=("export HPC_RANK=0 HPC_LOCAL_RANK=0 HPC_NODE_RANK=0 HPC_WORLD=1",),
                start=("srun",),
            )
            files = step_files(step, plan, binding, shape)
            submit = Cmd.of("sbatch", "--parsable", f"steps/{step.name}/job.sh", Var("HPC_TAG"))
            return JobFiles(files=files, submit=submit)
    Since: 0.1
    """


@hookspec(firstresult=True)
def submit_job(job: Job, tag: str, tools: ProgramRunner) -> str | None:
    """Hand a job to the scheduler exactly once and return its id.

    ACTS. Core wrote `tag` before this call. Ask the scheduler once: raise SubmitError with its own
    words when it refused, and with the code `submit-unclear` when the job may exist: core then looks
    the tag up through `query_jobs` and tries again only when it is not there.

    Example::

        @hookimpl
        def submit_job(job: Job, tag: str, tools: ProgramRunner) -> str:
            return tools.run(job.argv, cwd=job.directory).out.strip()
    Since: 0.1
    """


@hookspec(firstresult=True)
def query_jobs(
    ids: tuple[str, ...], tags: tuple[str, ...], account: str, project: bool, tools: ProgramRunner
) -> Iterable[JobState] | None:
    """What the scheduler knows of these jobs, in one query; with no ids and no tags all jobs of yours.

    ACTS. `project`: those of all users of the account, whose nodes and GPUs a site's cap counts. A job that
    is missing from the answer is `unknown`, never done. Raise NotReachable when the scheduler is silent.

    Example::

        @hookimpl
        def query_jobs(ids: tuple[str, ...], tags: tuple[str, ...], tools: ProgramRunner) -> list[JobState]:
            lines = tools.run(("squeue", "--me", "-h", "-t", "R", "-o", "%i")).out.splitlines()
            return [JobState(id=i, state=State.RUNNING) for i in lines]
    Since: 0.1
    """


@hookspec(firstresult=True)
def cancel_jobs(ids: tuple[str, ...], tools: ProgramRunner) -> bool | None:
    """Cancel these jobs; a job that is over already is no error. ACTS. Answer True.

    Example::

        @hookimpl
        def cancel_jobs(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
            return tools.run(("scancel", *ids)).code == 0
    Since: 0.1
    """


@hookspec(firstresult=True)
def allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
    """The nodes that this process stands in, for `hpctrain run --here`; None outside of any.

    ACTS. `environ` is the caller's whole environment; `env` is what the scheduler's programs need of it.

    Example::

        @hookimpl
        def allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
            if "PBS_JOBID" not in environ:
                return None
            mine = {name: value for name, value in environ.items() if name.startswith("PBS_")}
            hosts = tools.run(("cat", mine["PBS_NODEFILE"])).out.split()  # one for each MPI process
            return Allocation(job=mine["PBS_JOBID"], nodes=len(set(hosts)), env=mine)
    Since: 0.1
    """


@hookspec
def diagnose_rules() -> Iterable[Rule]:
    """Known failures as data: a pattern, its cause, its fix. PURE. Every answer counts.

    Example::

        @hookimpl
        def diagnose_rules() -> list[Rule]:
            return [Rule(name="oom", pattern="out of memory", cause="the GPU is full", fix="batch_size = 4")]
    Since: 0.1
    """


@hookspec
def job_event(event: Event) -> None:
    """Watch what happens to runs. An observer: an error here becomes a warning.

    Example::

        @hookimpl
        def job_event(event: Event) -> None:
            print(event.run, event.kind)
    Since: 0.1
    """
