"""Parquet and Arrow, by groups of rows; pyarrow is imported when such a file is met."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain_tokens.faults import DataError

BATCH = 1024


def groups(path: Path, kind: str) -> list[tuple[int, int]]:
    """The pieces of a file: one a row group of Parquet; an Arrow file is one, its batches have no index."""
    with _reading(path):
        if kind == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                return [(i, i + 1) for i in range(file.metadata.num_row_groups)]
        with _arrow(path):
            return [(0, 1)]


def rows(path: str, kind: str, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Each row of these groups as a dict."""
    with _reading(Path(path)):
        if kind == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH, row_groups=list(range(start, stop))):
                    yield from batch.to_pylist()
        else:
            with _arrow(Path(path)) as reader:
                for batch in reader:
                    yield from batch.to_pylist()


def columns(path: Path, kind: str) -> dict[str, str]:
    """The names of columns with their types."""
    with _reading(path):
        if kind == "parquet":
            import pyarrow.parquet as pq

            schema = pq.read_schema(path)
        else:
            with _arrow(path) as reader:
                schema = reader.schema
        return {field.name: str(field.type) for field in schema}


class _reading:  # noqa: N801  (used as a statement)
    """Say which file cannot be read, and what is missing when it is the library."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        try:
            import pyarrow as pa
        except ModuleNotFoundError as error:
            raise DataError.lacking(error, self.path.name, str(self.path)) from None
        self.errors = (pa.ArrowException, OSError)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, self.errors):
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DataError.of("data-unreadable", f"cannot be read: {reason}", file=str(self.path)) from error


class _arrow:  # noqa: N801
    """An Arrow file in either of its two forms: with a footer, or as the stream that `datasets` writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        import pyarrow as pa

        self.map = pa.memory_map(str(self.path))
        if self.map.read(6) != b"ARROW1":
            self.map.seek(0)
            return pa.ipc.open_stream(self.map)
        self.map.seek(0)
        return _Batches(pa.ipc.open_file(self.map))

    def __exit__(self, *_: object) -> None:
        self.map.close()


class _Batches:
    """A file with a footer, read like a stream."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.schema = file.schema

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.file.num_record_batches):
            yield self.file.get_batch(i)
