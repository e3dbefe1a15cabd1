"""What a result was made from and what it holds; the same bytes for the same content and versions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpctrain_job.files import documents
from hpctrain_tokens import FORMAT, safely
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.options import Work
from hpctrain_tokens.pieces import Piece
from hpctrain_tokens.sources import Source
from hpctrain_tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from hpctrain_tokens.bad_rows import Ledger
    from hpctrain_tokens.shard import Shard

SCHEMA = "hpctrain/tokens/1"
AGAIN = "the command that made it, with --force"


def inputs(
    sources: Sequence[Source], pieces: Sequence[Piece], digests: Iterable[str]
) -> list[dict[str, Any]]:
    """The input files, each with a digest of the digests of its pieces."""
    hashes = [hashlib.sha256() for _ in sources]
    for piece, digest in zip(pieces, digests, strict=True):
        hashes[piece.source].update(digest.encode())
    return [
        {"file": s.path.name, "bytes": s.path.stat().st_size, "content": h.hexdigest()}
        for s, h in zip(sources, hashes, strict=True)
    ]


def of(
    work: Work,
    tokenizer: Tokenizer,
    key: str,
    input_rows: list[dict[str, Any]],
    shards: Sequence[Shard],
    ledger: Ledger,
    written: Mapping[str, object],
) -> dict[str, Any]:
    """The whole manifest. No time and no folder is in it, so that it can be compared."""
    options = asdict(replace(work.options, tokenizer=Path(work.options.tokenizer).name, template=""))
    lengths: Counter[int] = Counter()
    for shard in shards:
        lengths.update({int(bits): count for bits, count in shard.lengths.items()})
    return {
        "schema": SCHEMA,
        "key": key,
        "format": FORMAT,
        "inputs": input_rows,
        "tokenizer": {
            "sha256": tokenizer.digest,
            "library": tokenizer.version,
            "vocabulary": tokenizer.vocabulary,
            "end": work.end,
        },
        "options": options,
        "fields": asdict(work.fields),
        "type": work.code,
        "rows": {
            "read": sum(s.rows for s in shards),
            "bad": ledger.bad,
            "empty": sum(s.empty for s in shards),
            "ends_inside": sum(s.ends_inside for s in shards),
        },
        "documents": sum(s.documents for s in shards),
        "tokens": sum(s.tokens for s in shards),
        **({"learnt": sum(s.learnt for s in shards)} if "label" in work.streams else {}),
        "engines": dict(Counter(s.engine for s in shards)),
        "not_fast": sorted({s.why_not for s in shards if s.why_not}),
        "longest": max(s.longest for s in shards),
        "lengths": {str(bits): lengths[bits] for bits in sorted(lengths)},
        "bad": [fault.plain() for fault in ledger.faults],
        "files": dict(written),
    }


def write(path: Path, manifest: Mapping[str, Any]) -> None:
    safely.write(path, (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode())


def read(path: Path) -> dict[str, Any]:
    """The manifest at `path`; {} when there is none that can be read."""
    try:
        document = documents.read(path)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) and document.get("schema") == SCHEMA else {}


def whole(manifest: Mapping[str, Any], folder: Path) -> None:
    """Read every file; an error that names the one which is not what the manifest says."""
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file() or safely.sha256(path) != entry["sha256"]:
            how = "does not match its manifest" if path.is_file() else "is gone, and its manifest is there"
            raise DataError.of("data-content", f"{name} {how}", file=str(path), hint=AGAIN)
