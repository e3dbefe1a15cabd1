"""A twin as data, of what a machine answered: a capture on the frame of its cluster's facts.

What a capture does not tell (what is in no answer, hardware, another Slurm's own ways) is the twin's own, and
`twin up --from` says which answers came out otherwise.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain.doctor import capture, examination
from hpctrain.doctor.capture import Capture
from hpctrain.doctor.modules import named_paths
from hpctrain.doctor.question import Answer
from hpctrain.doctor.site import Site as Asked
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.runfile.facts import load_facts
from tests.twin import captured_slurm, recorded
from tests.twin.captured_modules import Modules
from tests.twin.plain import is_name, is_path, is_value
from tests.twin.site_file import HERE, ROOT, Honest, Library, Overlay, Proxy, Site, overlay_of

if TYPE_CHECKING:
    from tests.twin.life import Twin

KINDS = {"plugin": "aws-ofi-nccl", "libfabric": "libfabric", "nccl": "nccl", "rccl": "nccl"}
UNKNOWN_VERSION = "2.0.0"
"""Of a library whose file does not say it: it exports what the first ones did."""
_VOLATILE = re.compile(r"(?<=kib=)(\d+) \d+|(?<=files=)(\d+) \d+|(?<=\"ahead\": )-?\d+()")
"""What another look finds otherwise: what is free, and how far the clock is off."""
ACCOUNT = "capture.p1"
"""Of a cluster without a twin of ours; a capture has a word in the place of the real one."""
TEMPLATES = {"ACCOUNT": "{account}", "UID": "{uid}", "USER": "{user}"}
"""What a capture has in the place of names, as an overlay spells it."""
_WORD = re.compile(r"(?<![A-Za-z0-9])(?:ACCOUNT|PROJECT|UID|USER)(?![A-Za-z0-9])")
_PRINTENV = re.compile(r"printenv((?: \w+)+)\Z")
HONEST = Honest(
    real=("partitions, limits, QoS and nodes as a capture has them", "its module names and what they set"),
    stand_in=(
        "answers of the site's programs: as recorded",
        "libraries: real symbol tables, no function works",
    ),
    absent=("what the capture does not tell",),
)


read = capture.read


def site(path: Path) -> Site:
    """Facts, and an overlay made of the answers."""
    one = read(path)
    home = _distribution(one.cluster)
    cluster = load_facts(home / f"hpc_{one.cluster}").cluster
    account = _account(one.cluster)
    asked = examination.site_of(cluster, {"HOME": "/", "USER": "alice"}, account)
    questions = {question.name: question.expected for question in examination.questions(asked)}
    # Whoever wrote the file cannot ask what the facts do not: a variable of every shell, a program's name.
    answers = {name: answer for name, answer in one.answers.items() if name in questions}
    facts = "" if home.parent == ROOT else str(home.relative_to(HERE))
    try:
        overlay = _overlay(asked, answers, questions, facts, account)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise ConfigError.of("capture", f"{path} holds an answer that no machine gives: {error}") from None
    return Site(name=one.cluster, cluster=_measured(cluster, answers), overlay=overlay, distribution=home)


def ask(twin: Twin) -> str:
    """The capture that one of its users makes."""
    name = "capture-of-twin.json"
    twin.sh(f"rm -f {name}")
    words = ("doctor", "--account", twin.site.overlay.account, "--seconds", "240", "--capture", name)
    done = twin.run("hpctrain", *words, user="alice", timeout=300)
    assert done.returncode in (0, 6, 7), done.stdout + done.stderr
    return twin.sh(f"cat {name}")


def again(twin: Twin) -> Capture:
    """The same, read."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(ask(twin))
        file.flush()
        return read(Path(file.name))


def differing(first: Mapping[str, Answer], other: Mapping[str, Answer]) -> list[str]:
    """The questions that two captures answer otherwise; what programs say on stderr is chatter."""

    def told(answer: Answer | None) -> object:
        return answer and (_VOLATILE.sub(r"\1\2", answer.out), answer.code, bool(answer.fault))

    return [name for name in {**first, **other} if told(first.get(name)) != told(other.get(name))]


def _distribution(cluster: str) -> Path:
    """Where the facts of this cluster are: ours, or those of a stranger's twin."""
    if (HERE / f"sites/{cluster}.toml").exists() and (facts := overlay_of(cluster).facts):
        return HERE / facts
    return ROOT / f"hpc_{cluster}"


def _account(cluster: str) -> str:
    """As this site spells accounts, where its twin knows it: groups and folders are named after them."""
    return overlay_of(cluster).account if (HERE / f"sites/{cluster}.toml").exists() else ACCOUNT


def _overlay(
    asked: Asked, answers: Mapping[str, Answer], expected: Mapping[str, str], facts: str, account: str
) -> Overlay:
    cluster = asked.cluster

    def out(name: str) -> str:
        return answers[name].out if name in answers and answers[name].code == 0 else ""

    modules = Modules.of(answers, expected)
    return Overlay(
        login=name if is_name(name := out("name").strip()) else "login",
        account=account,
        node=captured_slurm.nodes(cluster, answers),
        honest=HONEST,
        facts=facts,
        home="/home/{user}",
        edf="container_engine" in cluster.facts,
        slurm=captured_slurm.conf(answers, account),
        accounting=captured_slurm.accounting(account, answers),
        system_modules=modules.system,
        module=modules.files,
        library=tuple(_libraries(out("network stack"))),
        variables=_variables(answers, expected.get("variables of paths", "").split(), account),
        proxy=_proxy(answers),
        recorded=recorded.programs(answers),
        made=tuple(_template(path, account) for path in _made(answers) if is_path(path)),
        present=tuple(
            filter(
                is_path,
                (*_present(answers), *_named(named_paths(asked), modules, out("modules of training"))),
            )
        ),
    )


def _measured(cluster: Cluster, answers: Mapping[str, Answer]) -> Cluster:
    """The facts with the sizes that were found: what the twin's folders and nodes are made of."""
    storage = {role: _sized(row, answers.get(f"role {role}")) for role, row in cluster.storage.items()}
    hardware = captured_slurm.sized(cluster.hardware, answers)
    return attrs.evolve(cluster, storage=storage, hardware=hardware)


def _sized(row: Storage, answer: Answer | None) -> Storage:
    look = dict(line.split("=", 1) for line in (answer.out if answer else "").splitlines() if "=" in line)
    size, files = (look.get(key, "").split()[:1] for key in ("kib", "files"))
    return attrs.evolve(
        row,
        quota_gb=int(size[0]) * 1024 / 1e9 if size else row.quota_gb,
        inodes=int(files[0]) if files and files[0].isdecimal() else row.inodes,
    )


def _variables(answers: Mapping[str, Answer], names: Sequence[str], account: str) -> dict[str, str]:
    """Variables of a login shell, as a twin spells them; of `names` what is not told is the twin's own."""
    lines = answers["variables of paths"].out.splitlines() if "variables of paths" in answers else []
    pairs = [tuple(line.split("=", 1)) for line in lines if line.partition("=")[0] in names]
    for name, answer in answers.items():
        if (printed := _PRINTENV.search(name)) and "&&" not in name:
            words, values = printed[1].split(), answer.out.splitlines()
            pairs += zip(words, values, strict=True) if len(values) == len(words) else ()
    variables = {name: f"/site/{name.lower()}" for name in names if name != "HOME"}
    for name, value in pairs:
        if value and "HOME" not in value and is_value(value):
            variables[name] = _template(value, account)
    return variables


def _template(text: str, account: str) -> str:
    """As an overlay spells it; `brics.p1` is the project p1, as for who wrote the capture."""
    words = {**TEMPLATES, "PROJECT": account.rpartition(".")[2]}
    return _WORD.sub(lambda match: words[match[0]], text)


def _libraries(text: str) -> Iterator[Library]:
    """libfabric first, which the plugin needs."""
    try:
        parts = json.loads(text.strip().rpartition("\n")[2])["parts"]
    except (ValueError, KeyError, TypeError):
        return
    rows = parts if isinstance(parts, dict) else {}
    for part in sorted(KINDS.keys() & rows.keys()):
        path, version = (
            rows[part].get(key) if isinstance(rows[part], dict) else "" for key in ("path", "version")
        )
        version = version if is_name(version) else UNKNOWN_VERSION
        if not is_path(path):
            continue
        kind = "aws-ofi-rccl" if "rccl-net" in path else KINDS[part]
        yield Library(kind=kind, version=version if version.count(".") == 2 else UNKNOWN_VERSION, path=path)


def _proxy(answers: Mapping[str, Answer]) -> Proxy | None:
    """Those that somebody listened on; a twin has one port."""
    live = [
        name.split()[1] for name, a in answers.items() if name.startswith("proxy ") and '"status"' in a.out
    ]
    ports = [int(port) for address in live if (port := address.rpartition(":")[2]).isdecimal()]
    names = tuple(filter(is_name, (address.rpartition(":")[0] for address in live)))
    return Proxy(names=names, port=ports[0]) if ports and names else None


def _present(answers: Mapping[str, Answer]) -> Iterator[str]:
    """Files that a row of `[[verify]]` listed."""
    for name, answer in answers.items():
        if name.startswith("verify ls /"):
            yield from (line for line in answer.out.splitlines() if line.startswith("/"))


def _made(answers: Mapping[str, Answer]) -> Iterator[str]:
    """The folders of roles that were there."""
    for name, answer in answers.items():
        at = re.match(r"at=(.+)\nfolder=1", answer.out)
        if name.startswith("role ") and at:
            yield at[1].replace("HOME", "/home/USER")


def _named(paths: tuple[str, ...], modules: Modules, out: str) -> Iterator[str]:
    """Files that the facts name for training, as far as they were there."""
    values = {name: value for module in modules.files for name, value in module.set.items()}
    for number, path in enumerate(paths):
        full = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), path)
        if f"@hpctrain path {number} 0" in out.splitlines() and "$" not in full:
            yield full
