"""What readers fell over once, or were attacked with: the corpus, by target.

A fuzzer's find is added here, as short as it can be made. It begins with these too.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping

from tests.checkpoints.models import LLAMA
from tests.hostile.grounds import QSTAT, SACCT, SQUEUE

HOST = os.uname().nodename
LLAMA_TEXT = json.dumps(LLAMA)
_PIDS: tuple[object, ...] = (float("inf"), -1, 0, 2**70, [], "x")
_DIGITS = "9" * 5000
_ROWS = '{"v": 1, "time": "x", "event": "created", "plugins": -1}\n'
_MANIFEST = "# hpctrain manifest 1 venv-a\n"
_RECORD: Mapping[str, bytes] = {
    "an event without its name": b'{"v": 1}\n',
    "plugins that are a number": _ROWS.encode(),
    "a tag that is a list": b'{"v": 1, "event": "intent", "step": "train", "tag": [[]]}\n',
    "a step that is a table": b'{"v": 1, "event": "intent", "step": {}, "tag": "x"}\n',
    **{
        f"process {pid}": json.dumps(
            {"event": "step-started", "step": "train", "pid": pid, "host": HOST}
        ).encode()
        + b"\n"
        for pid in _PIDS
    },
    "a version of digits": b'{"v": 99, "event": "created"}\n',
}
_PLAN: Mapping[str, bytes] = {
    "a plan that is a list": b"[]",
    "training that is a number": b'{"train": 3}',
    "a pattern that is none": b'{"train": {"progress": [{"regex": "(", "scale": {}}]}}',
    "a pattern of brackets": b'{"train": {"progress": [{"regex": "' + b"(" * 5000 + b'"}]}}',
    "a folder elsewhere": b'{"train": {"checkpoints": {"format": "hf", "folder": "../../../.."}}}',
    "a peak that is a text": b'{"train": {}, "peak_tflops": "x"}',
}
_METRICS: Mapping[str, bytes] = {
    "a loss that is a table": b'{"step": 1, "loss": {"": {}}}\n',
    "a loss of digits": b'{"step": 1, "loss": 1' + b"0" * 4000 + b"}\n",
    "a step that is a text": b'{"step": "x", "loss": 1}\n',
    "an evaluation that is a list": b'{"step": 1, "eval_loss": []}\n',
    "a rate that is true": b'{"step": 1, "loss": 1, "tokens_per_s": true, "mfu": "x"}\n',
    "a step that one does not change": b'{"step": 9223372036854775808, "loss": 2.5}\n',
    "infinity": b'{"step": 1, "loss": Infinity, "tokens_per_s": NaN}\n',
}
_LOG: Mapping[str, bytes] = {
    "a cause of ours": b"error[x]: " + b"y" * 100_000 + b"\n  hint: $(touch RAN)\n",
    "one line without an end": b"x" * (4 << 20),
    "carriage returns": b"\r" * (1 << 20),
}
_ROOT = "Root Cause (first observed failure):\n"
_TRACEBACKS: Mapping[str, bytes] = {
    "tables without an end": b"Failures:\n" * 90_000,
    "roots without an end": _ROOT.encode() * 25_000,
    "tables of others": (f"Failures:\n{_ROOT}a\n  rank      : {_DIGITS} ".encode() + b"Failures:\n" * 80_000),
    "a rank of digits": f"[rank{_DIGITS}]: Traceback (most recent call last):\n[rank1]: X: y\n".encode(),
    "ranks that say no more": b"[rank0]: Traceback (most recent call last):\n" * 20_000 + b"x\n" * 60_000,
    "exceptions without an end": b"Traceback (most recent call last):\nX: y\n" * 25_000,
}
_TERMS = b'{"v": 1, "total": 7200, "time": %b, "links": 2, "avoid": 8, "checkpoints": %b}'
_NAMED = b'{"folder": "a", "name": %b, "complete": "x"}'
_CHAIN: Mapping[str, bytes] = {
    "no time": _TERMS % (b"0", b"null"),
    "an infinite time": _TERMS % (b"1e999", b"null"),
    "a time of digits": _TERMS % (_DIGITS[:4000].encode(), b"null"),
    "a pattern that is none": _TERMS % (b"60", _NAMED % b'"("'),
    "a pattern of brackets": _TERMS % (b"60", _NAMED % (b'"' + b"(" * 3000 + b'"')),
    "a pattern without a step": _TERMS % (b"60", _NAMED % b'"x"'),
    "a layout that is a list": _TERMS % (b"60", b"[]"),
}
_ATTEMPTS: Mapping[str, bytes] = {
    "half a million lines": b"x\n" * (1 << 19),
    "a start without its job": b'{"v": 1, "event": "began", "at": 1}\n',
    "a start at infinity": b'{"v": 1, "event": "began", "job": "1", "at": 1e999}\n',
    "a start of digits": b'{"v": 1, "event": "began", "job": "1", "at": ' + b"9" * 4000 + b"}\n",
    "nodes that are a number": b'{"v": 1, "event": "began", "job": "1", "at": 1, "nodes": 3}\n',
    "a step that is a text": b'{"v": 1, "event": "began", "job": "1", "at": 1, "step": "x"}\n',
    "an end before any start": b'{"v": 1, "event": "ended", "job": "1", "at": 1, "cause": "saved"}\n',
    "a cause of another version": b'{"v": 1, "event": "ended", "job": "1", "at": 1, "cause": "x"}\n',
    "nodes that are words": (
        b'{"v": 1, "event": "began", "job": "1", "at": 1}\n'
        b'{"v": 1, "event": "ended", "job": "1", "at": 1, "cause": "node fault", '
        b'"lost_nodes": [{}, 3, "$(touch RAN)"]}\n'
    ),
    "a line end in a node": (
        b'{"v": 1, "event": "began", "job": "1", "at": 1}\n'
        b'{"v": 1, "event": "ended", "job": "1", "at": 1, "cause": "node fault", '
        b'"lost_nodes": ["a\\ndrop 1"]}\n'
    ),
}
_VERDICT = (
    b'{"v": 1, "at": 1.0, "job": "7", "kind": %b, "words": "x", "ranks": %b, "nodes": ["n1"], '
    b'"node_ranks": %b, "evidence": [], "holds": true, "ends": true}\n'
)
_HANGS: Mapping[str, bytes] = {
    "a kind that is a number": _VERDICT % (b"3", b"[]", b"[]"),
    "ranks that are texts": _VERDICT % (b'"idle"', b'["x"]', b"[]"),
    "ranks that are infinite": _VERDICT % (b'"idle"', b"[1e999]", b"[]"),
    "nodes that are none": _VERDICT % (b'"idle"', b"[3]", b'[-5, 3, "x"]'),
    "no ranks": _VERDICT % (b'"idle"', b"null", b"[]"),
}
_MEASURES = (
    b'{"host": "$(touch RAN)", "rank": %b, "began": 1, "gpus": %b, "gpu_fault": "", "counted": true, '
    b'"memory": 1, "product": "a", "seconds": 0.2, "disk_fault": "\\u001b]0;x"}'
)
_PULSE = (
    b'{"v": 1, "rank": 1, "pid": %b, "born": "1", "at": 2.0, "over": false, "numbers": {"0": 3}, '
    b'"members": {"0": %b}, "stack": %b, "orders": %b}'
)
_PULSES: Mapping[str, bytes] = {
    "every process": _PULSE % (b"-1", b'"0:2:1"', b"[]", b"[]"),
    "process 0": _PULSE % (b"0", b'"0:2:1"', b"[]", b"[]"),
    "a process of digits": _PULSE % (b"9" * 4000, b'"0:2:1"', b"[]", b"[]"),
    "members that are a number": _PULSE % (b"7", b"3", b"[]", b"[]"),
    "members without an end": _PULSE % (b"7", b'"' + b"0:1000000:1," * 1000 + b'0:1:1"', b"[]", b"[]"),
    "orders that are tables": _PULSE % (b"7", b'"0:2:1"', b"[{}]", b"[{}]"),
}
_RUN = {
    "record.jsonl": _RECORD,
    "plan.json": _PLAN,
    "metrics.jsonl": _METRICS,
    "logs/train.log": {**_LOG, **_TRACEBACKS},
    "steps/train/hangs.jsonl": _HANGS,
    "graph.json": {
        "another's runs": b'{"v": 1, "name": "../../x", "nodes": []}',
        "steps that are a text": b'{"v": 1, "nodes": "' + b"x" * 100_000 + b'"}',
        "steps that are numbers": b'{"v": 1, "nodes": [' + b"1," * 100_000 + b"1]}",
        "a version that is none": b'{"v": null}',
        "a version of digits": b'{"v": 1e999}',
    },
    "steps/train/exit": {
        "a code of digits": b'{"job": "x", "code": ' + b"9" * 4000 + b"}",
        "a code that is infinite": b'{"job": "x", "code": 1e999}',
    },
}


def _squeue(field: int, value: str, line: str = SQUEUE, separator: str = "\x1f") -> bytes:
    fields = line.split(separator)
    fields[field] = value
    return separator.join(fields).encode() + b"\n"


_HOSTS = {
    "a thousand million nodes": "n[0-999999999]",
    "nodes times nodes": "n[1-999][1-999][1-999][1-999]",
    "brackets without an end": "[" * 100_000,
    "brackets in a row": "[1]" * 100_000,
    "numbers of digits": f"n[1-{_DIGITS}]",
}
_TIMES = {
    "digits": _DIGITS,
    "no digits": "²",
    "colons": "1:" * 10_000 + "1",
    "days of digits": f"{_DIGITS}-1:00",
}


def _archive_of(name: str) -> bytes:
    """A zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "x")
    return file.getvalue()


_ARCHIVES: Mapping[str, bytes] = {
    "a name that is not UTF-8": _archive_of("é/data.pkl").replace("é".encode(), b"\xa0\xa1"),
    "a directory of 4 GiB": _archive_of("a/data.pkl").replace(b"PK\5\6" + bytes(4), b"PK\5\6" + b"\xff" * 4),
    "no member": _archive_of("a/b")[-22:],
}

FINDS: Mapping[str, Mapping[str, bytes]] = {
    **dict.fromkeys(
        (
            "torch",
            "universal/global_step2_universal/mp_rank_00_model_states.pt",
            "zero/global_step2/mp_rank_00_model_states.pt",
            "neox/global_step0/layer_02-model_00-model_states.pt",
            "megatron/release/common.pt",
        ),
        _ARCHIVES,
    ),
    "squeue": {
        **{name: _squeue(7, value) for name, value in _HOSTS.items()},
        **{f"time: {name}": _squeue(4, value) for name, value in _TIMES.items()},
        **{
            f"status: {name}": _squeue(2, value).replace(b"RUNNING", b"FAILED")
            for name, value in _TIMES.items()
        },
        "an id of digits": _squeue(0, _DIGITS),
    },
    "sacct": {
        **{name: _squeue(7, value, SACCT, "|") for name, value in _HOSTS.items()},
        **{f"status: {name}": _squeue(2, f"{value}:{value}", SACCT, "|") for name, value in _TIMES.items()},
    },
    "qstat": {
        "deep": b'{"Jobs":' * 2000,
        "deeper": b'{"a":' * 100_000,
        "a walltime of digits": QSTAT.replace("00:05:00", _DIGITS).encode(),
        "a walltime that is no number": QSTAT.replace("00:05:00", "²:³").encode(),
        "an id that is a table": b'{"Jobs": {"4711.pbs": {"job_state": {}, "Exit_status": "'
        + _DIGITS.encode()
        + b'"}}}',
        "jobs that are a list": b'{"Jobs": []}',
        "a start beyond time": QSTAT.replace("2026", "9" * 9).encode(),
    },
    "last answer": {
        "a tag that is a list": b'{"at": 9e99, "ids": ["4711"], "tags": [], "jobs": [{"tag": [[]]}]}',
        "ids that are numbers": b'{"at": 1, "ids": [1, "a"], "tags": [], "jobs": []}',
        "an age of digits": b'{"at": ' + b"9" * 4000 + b', "ids": [], "tags": [], "jobs": []}',
    },
    "manifest of an artifact": {
        "a size of digits": f"{_MANIFEST}{_DIGITS} {'a' * 64}  content/python\n".encode(),
        "a file outside": f"{_MANIFEST}1 {'a' * 64}  content/../../RAN\n".encode(),
        "a device": f"{_MANIFEST}1 {'a' * 64}  /dev/zero\n".encode(),
        "a name with a line end": f"{_MANIFEST}1 \\{'a' * 64}  content/a\\nb\n".encode(),
    },
    "manifest of a checkpoint": {
        "a size of digits": f"# hpctrain manifest 1\n{_DIGITS} {'a' * 64}  weights\n".encode(),
        "a size in other digits": f"# hpctrain manifest 1\n٣ {'a' * 64}  weights\n".encode(),
        "a device": f"# hpctrain manifest 1\n1 {'a' * 64}  /dev/zero\n".encode(),
        "NUL in a name": f"# hpctrain manifest 1\n1 {'a' * 64}  a\0b\n".encode(),
    },
    "requirements": {"half a million packages": b"x\n" * (1 << 19)},
    "run file": {
        "a key of many parts": b"a." * 100_000 + b"a = 1\n",
        "a quoted key of many parts": b'"a".' * 100_000 + b"a = 1\n",
        "a table of many parts": b"[" + b"a . " * 100_000 + b"a]\n",
        "an inline table of many parts": b"x = {" + b"a." * 100_000 + b"a = 1}\n",
    },
    "config.json": {
        key: LLAMA_TEXT.replace(f'"{key}": {value}', f'"{key}": "x"').encode()
        for key, value in LLAMA.items()
        if type(value) is int
    },
    "safetensors": {
        "a header of 2^63 bytes": (2**63).to_bytes(8, "little") + b"{}",
        "a header of a gigabyte": (1 << 30).to_bytes(8, "little") + b"{}",
    },
    "staged": {
        "a header of 2^63 bytes": (2**63).to_bytes(8, "little") + b"{}",
        "ends that are texts": (32).to_bytes(8, "little") + b'{"a": {"data_offsets":[0, "xx"]}}',
    },
    "token index": {
        "2^63 sequences": b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x08" + b"\xff" * 16,
        "2^40 documents": b"MMIDIDX\0\0"
        + (1).to_bytes(8, "little")
        + b"\x08"
        + (2).to_bytes(8, "little")
        + (1 << 40).to_bytes(8, "little"),
    },
    "pulse": _PULSES,
    "page of a node": {
        "members that are a list": b'{"v": 1, "still": 1, "members": [], "ranks": []}',
        "ranks that are a number": b'{"v": 1, "still": 1, "members": {}, "ranks": 3}',
        "a rank that is a text": b'{"v": 1, "still": 1, "members": {}, "ranks": ["x"]}',
    },
    "beat of a guard": {
        "a list": b"[]",
        "a key that nobody knows": b'{"count": 1, "phase": "idle", "x": 1}',
        "a count without an end": b'{"count": 1e999, "attempt": 0, "code": 0, "phase": "idle"}',
    },
    "measures of a node": {
        "a rank without an end": _MEASURES % (b"1e999", b"[]"),
        "a rank below the first": _MEASURES % (b"-9", b"[]"),
        "GPUs that are a number": _MEASURES % (b"1", b"3"),
        "a GPU without an end": _MEASURES % (b"1", b'[{"memory": 1e999, "errors": 0}]'),
        "GPUs without an end": _MEASURES % (b"1", b"[" + b'{"memory":1,"errors":1},' * 100_000 + b"{}]"),
    },
    "verdicts for a job": _HANGS,
    "log of a stranger, nanotron": _TRACEBACKS,
    "answers of a node": {"deep": b'{"host":' * 100_000, "a list": b"[]", "a text": b'{"answers": "x"}'},
    **{
        f"{file} {command}": finds
        for file, finds in {**_RUN, "chain.json": _CHAIN, "attempts.jsonl": _ATTEMPTS}.items()
        for command in (
            "begin",
            "end",
            "watch",
            "report",
            "status",
            "diagnose",
            "metrics",
            "logs",
            "runs",
            "continue",
            "cancel",
        )
    },
}
