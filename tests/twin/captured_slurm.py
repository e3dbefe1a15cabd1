"""Slurm's files of a capture: its partitions with their limits, its nodes, its QoS and accounts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from hpctrain.doctor.question import Answer
from hpctrain.model.cluster import Cluster, Hardware
from hpctrain.model.step import Need
from tests.twin.plain import MOST, is_name, is_word
from tests.twin.site_file import USERS, Node

UP = 2
"""Nodes of a kind that run; the others are there on paper, powered down."""
LIMITS = (
    "AllowGroups", "AllowAccounts", "AllowQos", "Default", "DefaultTime", "MaxNodes", "MaxTime", "MinNodes",
    "Hidden", "RootOnly", "OverSubscribe", "PriorityTier", "PriorityJobFactor", "GraceTime", "State",
    "DefMemPerNode", "MaxMemPerNode", "DefMemPerCPU", "MaxMemPerCPU", "MaxCPUsPerNode",
)  # fmt: skip
"""What slurm.conf and `scontrol show partition` call alike."""
UNSAID = ("N/A", "NONE", "UNLIMITED", "(null)", "ALL", "")
_WORD = re.compile(r"(\w+)=(\S*)")
_GPUS = re.compile(r"gpu(?::[A-Za-z][\w.-]*)?:(\d+)")
_LIST = re.compile(r"([^,\[\]]+)(?:\[([^\]]*)\])?(?:,|\Z)")
_NUMBER = re.compile(r"(.*?)(\d+)\Z")

Answers = Mapping[str, Answer]
Shape = tuple[int, int, int]
"""Cores, MB of memory and GPUs of a node."""


def _out(answers: Answers, name: str) -> str:
    answer = answers.get(f"scheduler {name}")
    return answer.out if answer and answer.code == 0 else ""


def _partitions(answers: Answers) -> list[dict[str, str]]:
    texts = _out(answers, "partitions").split("PartitionName=")[1:]
    records = [dict(_WORD.findall(f"PartitionName={text}")) for text in texts]
    return [record for record in records if is_name(record["PartitionName"])]


def _shapes(answers: Answers) -> Iterator[tuple[str, int, Shape]]:
    """Partition, number of nodes, and what each of them has."""
    for line in _out(answers, "nodes").splitlines():
        words = line.split("|")
        if len(words) == 5 and all(word.rstrip("+").isdecimal() for word in words[1:4]):
            partition, count, cores, memory = words[0], *(int(word.rstrip("+")) for word in words[1:4])
            yield (
                str(partition),
                int(count),
                (int(cores), int(memory), sum(map(int, _GPUS.findall(words[4])))),
            )


def sized(hardware: Hardware, answers: Answers) -> Hardware:
    """With what the nodes with the most GPUs have."""
    shapes = [shape for _, _, shape in _shapes(answers)]
    if not shapes:
        return hardware
    cores, megabytes, gpus = max(shapes, key=lambda shape: shape[2])
    return attrs.evolve(hardware, cores_per_node=cores, memory_gb=megabytes // 1024, gpus_per_node=gpus)


def _kinds(answers: Answers) -> dict[tuple[Shape, tuple[str, ...]], list[str]]:
    """Shape and partitions -> names of the nodes."""
    shape_of: dict[str, Shape] = {}
    for record in _partitions(answers):
        names = iter(names_of(record.get("Nodes", "")))
        for _, count, shape in (row for row in _shapes(answers) if row[0] == record["PartitionName"]):
            for _, name in zip(range(count), names, strict=False):
                shape_of.setdefault(name, shape)
    members = {r["PartitionName"]: set(names_of(r.get("Nodes", ""))) for r in _partitions(answers)}
    kinds: dict[tuple[Shape, tuple[str, ...]], list[str]] = {}
    for name, shape in shape_of.items():
        partitions = tuple(partition for partition, names in members.items() if name in names)
        kinds.setdefault((shape, partitions), []).append(name)
    return kinds


def nodes(cluster: Cluster, answers: Answers) -> tuple[Node, ...]:
    """Those that run: one or two of each kind."""
    with_gpus = [place.name for place in cluster.place if not place.here and Need.GPU in place.provides]
    others = [place.name for place in cluster.place if not place.here and Need.GPU not in place.provides]
    return tuple(
        Node(
            place=(with_gpus if gpus or not others else others)[0],
            names=tuple(names[:UP]),
            partitions=partitions,
            cpus=cores,
            memory_mb=megabytes,
        )
        for ((cores, megabytes, gpus), partitions), names in _kinds(answers).items()
    )


def conf(answers: Answers, account: str) -> tuple[str, ...]:
    """Of slurm.conf: nodes that are powered down, then partitions."""
    kinds = _kinds(answers)
    away = [(shape, names[UP:]) for (shape, _), names in kinds.items() if names[UP:]]
    known = {name for names in kinds.values() for name in names}
    result = []
    if away:
        result.append(
            "SuspendProgram=/bin/true\nResumeProgram=/bin/true\nResumeTimeout=65000\nSuspendTime=-1"
        )
    for (cores, megabytes, gpus), names in away:
        shape = f"CPUs={cores} Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory={megabytes}"
        gres = f" Gres=gpu:{gpus}" if gpus else ""
        result.append(f"NodeName={ranges(names)} {shape}{gres} State=CLOUD")
    for record in _partitions(answers):
        members = [name for name in names_of(record.get("Nodes", "")) if name in known]
        words = [f"{key}={record[key]}" for key in LIMITS if record.get(key, "") not in UNSAID]
        words = [word for word in words if is_word(word)]
        text = " ".join(words).replace("=ACCOUNT", f"={account}")
        text = re.sub(r"AllowGroups=\S+", "AllowGroups=project", text)
        result.append(f"PartitionName={record['PartitionName']} Nodes={ranges(members)} {text}")
    return tuple(result)


def accounting(account: str, answers: Answers) -> tuple[str, ...]:
    """sacctmgr's words; none where the machine has no accounting."""
    count = _out(answers, "your accounts").split().count("ACCOUNT")
    rows = [line.split("|") for line in _out(answers, "limits of the QoS").splitlines()]
    rows = [row for row in rows if len(row) == 4 and is_name(row[0]) and all(map(is_word, row))]
    if not count:
        return ()
    _, dot, project = account.partition(".")
    accounts = [account, *(f"other{number}{dot}{project}" for number in range(1, count))]
    every = ",".join(dict.fromkeys(("normal", *(row[0] for row in rows))))
    lines: list[str] = []
    for qos, wall, submitted, tres in rows:
        keys = {"MaxWall": wall, "MaxSubmitJobsPerUser": submitted, "MaxTRESPerJob": tres}
        limits = " ".join(f"{key}={value}" for key, value in keys.items() if value)
        if qos != "normal":
            lines.append(f"add qos {qos} Flags=DenyOnLimit {limits}".rstrip())
        elif limits:
            lines.append(f"modify qos normal set {limits}")
    users = f"root,{','.join(USERS)}"
    lines += [f"add account {account}" for account in accounts]
    lines += [f"add user {users} account={a} qos={every} defaultqos=normal" for a in accounts]
    return tuple(lines)


def names_of(text: str) -> list[str]:
    """`n[1-2,4],x` in full."""
    names: list[str] = []
    for head, inside in _LIST.findall(text if text != "(null)" else ""):
        for part in inside.split(",") if inside else [""]:
            first, _, last = part.partition("-")
            ends = [int(end) for end in (first, last or first) if end.isdecimal() and len(end) < 8]
            numbers = range(ends[0], ends[1] + 1) if len(ends) == 2 else ()
            if len(names) + len(numbers) > MOST:
                return names
            names += [f"{head}{number:0{len(first)}}" for number in numbers] or [head]
    return list(filter(is_name, names))


def ranges(names: Iterable[str]) -> str:
    """The same in short: Slurm's lines have an end."""
    rows: list[tuple[str, int, int, int]] = []
    for name in names:
        match = _NUMBER.match(name)
        head, digits = (match[1], match[2]) if match else (name, "")
        number = int(digits) if digits else -1
        if rows and digits and rows[-1][:2] == (head, len(digits)) and rows[-1][3] == number - 1:
            rows[-1] = (*rows[-1][:3], number)
        else:
            rows.append((head, len(digits), number, number))
    return ",".join(
        head if not width else f"{head}[{first:0{width}}-{last:0{width}}]"
        for head, width, first, last in rows
    )
