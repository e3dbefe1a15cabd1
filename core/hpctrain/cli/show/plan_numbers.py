"""What a plan says of the size, the memory, the time and the cost of a training, as labelled rows."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.model.cluster import Reference
from hpctrain.model.plan import Plan, Survey
from hpctrain.model.train import Numbers
from hpctrain.plan import chain, predict
from hpctrain.plan.words import word_text
from hpctrain.ui import text


def numbers_of(plan: Plan, survey: Survey) -> Iterator[tuple[str, str]]:
    """Parameters, memory, tokens, time: what is known, then what is left out."""
    numbers = plan.train.numbers if plan.train else Numbers()
    if plan.train is not None and plan.train.start != "":
        yield (
            "start",
            f"{word_text(plan.train.start)} (first attempt; later ones: the run's own newest checkpoint)",
        )
    yield from _size(numbers)
    yield from _memory(plan, numbers)
    yield from _effort(numbers)
    yield from _time(plan, numbers, survey)
    start = startup(plan)
    if start is not None:
        yield "start-up", start
    if _is_vetted(plan):
        yield (
            "vetting",
            "each node is measured first, within a minute, and unfit ones are left out ([resources] vet)",
        )
    yield from _tracking(plan)
    if numbers.leaves_out:
        yield "without", ", ".join(numbers.leaves_out)


def _size(numbers: Numbers) -> Iterator[tuple[str, str]]:
    if numbers.parameters is None:
        return
    trained = numbers.trained
    part = trained / numbers.parameters if trained is not None else 1
    share = f", {text.amount(trained)} trained ({text.percent(part, places=2)})" if part < 1 else ""
    active = f", {text.amount(numbers.active)} a token" if numbers.active is not None else ""
    yield "model", f"{text.amount(numbers.parameters)} parameters{active}{share}"


def _memory(plan: Plan, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Of a GPU, of a node, and of the disk."""
    if numbers.memory_gb is not None:
        has, part = plan.cluster.hardware.gpu_memory_gb, numbers.activations_gb
        whole = f"{numbers.memory_gb + (part or 0):.3g} GB" + (f" of {has:g} GB per GPU" if has else "")
        yield "memory", whole + (f", {part:.3g} GB of them activations" if part is not None else "")
    host = _host(plan, numbers)
    if host:
        yield "host", host
    if numbers.checkpoint_gb is not None:
        layout = plan.train.checkpoints if plan.train else None
        keep = plan.run.checkpoint.keep or (layout.keeps if layout else 0)
        size = numbers.checkpoint_gb * 1e9
        several = f", {text.size(size * keep)} for the {keep} that stay" if keep > 1 else ""
        yield "saving", f"{text.size(size)} a checkpoint on the disk{several}"


def _effort(numbers: Numbers) -> Iterator[tuple[str, str]]:
    if numbers.tokens_per_step is not None:
        rows = f" ({text.count(numbers.rows_per_step)} rows)" if numbers.rows_per_step else ""
        steps = f", {text.count(numbers.steps)} steps" if numbers.steps else ""
        total = f": {text.amount(numbers.tokens_per_step * numbers.steps)}" if numbers.steps else ""
        yield "tokens", f"{text.count(numbers.tokens_per_step)} a step{rows}{steps}{total}"
    if numbers.vocabulary_padded not in (None, numbers.vocabulary):
        yield "vocabulary", f"{numbers.vocabulary} trained as {numbers.vocabulary_padded}"
    if numbers.flops_per_token is not None:
        yield "work", _work(numbers)


def _time(plan: Plan, numbers: Numbers, survey: Survey) -> Iterator[tuple[str, str]]:
    """`9m, as small/1 trained (0.38 s a step); 29s predicted at 30% of peak (assumed), 0.01 node-hours`, and
    what the site measured."""
    seconds, earlier = predict.seconds(plan), survey.earlier
    times = []
    if earlier and earlier.step_s and numbers.steps:
        took = text.duration(earlier.step_s * numbers.steps, rough=True)
        times.append(f"{took}, as {earlier.title} trained ({earlier.step_s:.3g} s a step)")
    if seconds is not None:
        least = "at least " if (numbers.parameters or 0) < predict.SMALL else ""
        time = f"{least}{text.duration(seconds, rough=True)} predicted at {predict.MFU:.0%} of peak (assumed)"
        hours = text.hours(predict.node_hours(plan, seconds))
        times.append(f"{time}, {hours} node-hours{_jobs(plan, seconds)}")
    if times:
        yield "time", "; ".join(times)
    measured = predict.reference(plan)
    if seconds is not None and measured is not None:
        yield "measured", _measured(plan, numbers, measured)


def _measured(plan: Plan, numbers: Numbers, measured: Reference) -> str:
    """`390 TFLOP/s a GPU, 39% of peak: 8B in bf16 on 64 GPUs here (address)`."""
    peak = plan.cluster.hardware.peak_tflops
    share = f", {measured.tflops / peak:.0%} of peak" if peak else ""
    rate = f", {text.count(round(measured.tokens_per_s))} tokens/s" if measured.tokens_per_s else ""
    is_smaller = (numbers.parameters or 0) < measured.parameters * 2.5e8
    less = "; smaller models reach less, some a twentieth" if is_smaller else ""
    model = f"{measured.model} in {measured.precision} on {text.count(measured.gpus)} GPUs"
    return f"{measured.tflops:g} TFLOP/s a GPU{share}{rate}: {model} here ({measured.source}){less}"


def _host(plan: Plan, numbers: Numbers) -> str:
    """`64 GB to load the model, 16 GB to save it, of 512 GB per node`."""
    parts = [
        f"{text.size(gigabytes * 1e9)} {what}"
        for gigabytes, what in ((numbers.loading_gb, "to load the model"), (numbers.saving_gb, "to save it"))
        if gigabytes is not None
    ]
    has = plan.cluster.hardware.memory_gb
    return ", ".join(parts) + (f", of {has:g} GB per node" if has and parts else "")


def _jobs(plan: Plan, seconds: float) -> str:
    """` in 7 jobs`, where the training is longer than one."""
    jobs, time = predict.jobs(plan, seconds), plan.run.resources.time
    return f" in {jobs} jobs of {time.short}" if jobs > 1 and time else ""


def startup(plan: Plan) -> str | None:
    """`2m predicted: …` from a size on where it is worth knowing; one node's is seconds anywhere."""
    train = next((s for s in plan.steps if s.step.trains), None)
    if train is None or train.step.launch.nodes < MANY_NODES or not plan.run.environment.use:
        return None
    from hpctrain.plan.startup import MEANS, SHARED, curves, spread, way

    launch, taken = train.step.launch, way(train.around)
    curve = next(c for c in curves(launch.nodes, max(1, launch.gpus_per_node)) if c.way == taken)
    time = text.duration(curve.seconds, rough=True)
    prediction = f"{time} predicted to the first step ({spread(curve)}) from {MEANS[taken]}"
    load = f", {text.amount(curve.operations)} operations on it" if taken == SHARED else ""
    return f"{prediction}{load}: --explain startup"


MANY_NODES = 16


def _is_vetted(plan: Plan) -> bool:
    """Where the scheduler's jobs do not do it, a problem says so."""
    return chain.is_vetted(plan) and not any(p.where == "resources.vet" for p in plan.problems)


def _tracking(plan: Plan) -> Iterator[tuple[str, str]]:
    """`W&B  online: the key is given, and nodes reach the network`."""
    train = plan.step_named("train")
    env = train.around.env if train else ()
    yield from (("W&B", f"{word_text(v.value)}: {v.why}") for v in env if v.name == "WANDB_MODE")


def _work(numbers: Numbers) -> str:
    """`51.5 GFLOP a token (48.25 causal); the hardware does 4/3 of it`."""
    causal = f" ({numbers.flops_causal / 1e9:.4g} causal)" if numbers.flops_causal is not None else ""
    hardware_note = f"; the hardware does {numbers.hardware:.2f} times that" if numbers.hardware != 1 else ""
    return f"{(numbers.flops_per_token or 0) / 1e9:.4g} GFLOP a token{causal}{hardware_note}"
