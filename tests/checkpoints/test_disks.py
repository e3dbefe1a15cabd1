"""Pages between memory and the disk itself: the same bytes as by way of the page cache."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.copying import buffers, writeback
from hpctrain_plugins.checkpoints.copying.buffers import PAGE, buffer, room_in, whole_pages
from hpctrain_plugins.checkpoints.copying.disks import Disk, is_local
from hpctrain_plugins.checkpoints.copying.engine import Copy, Pair, compare, run
from hpctrain_plugins.checkpoints.copying.reading import CHUNK, Ledger, Reader
from hpctrain_plugins.checkpoints.copying.writing import Writer
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import Tensor, whole
from tests.checkpoints.models import GPT_NEOX, LLAMA, make


def cached(file: Path, at: int = 0) -> bool:
    """Whether the page cache holds that page of the file."""
    with file.open("rb") as held:
        try:
            return os.preadv(held.fileno(), [bytearray(PAGE)], at, os.RWF_NOWAIT) > 0
        except BlockingIOError:
            return False
        except OSError as error:
            pytest.skip(f"the file system does not say what it has cached ({error.strerror})")


def asked(folder: Path) -> Path | None:
    """A file that was written past the page cache, if the disk below the tests takes that."""
    disk, file = Disk(os.O_RDWR | os.O_CREAT, os.pwrite), folder / "asked"
    moved = disk.move(file, 0, filled(CHUNK, 0))
    disk.close()
    return file if is_local(folder) and moved == (0, CHUNK) else None


PLACES = [0, 1, 511, PAGE, PAGE + 8, 3 * PAGE - 1]
SIZES = [0, 1, PAGE, buffers.WORTH + PAGE - 1, buffers.WORTH + 2 * PAGE, CHUNK - 1, CHUNK]


def texts(folder: Path) -> dict[str, bytes]:
    """Every file but the record, which says how long it took."""
    return {
        str(f.relative_to(folder)): f.read_bytes()
        for f in folder.rglob("*")
        if f.is_file() and f.name != "conversion.json"
    }


def filled(size: int, at: int) -> memoryview:
    """`size` random bytes that lie in memory as from byte `at` of a file."""
    room = room_in(buffer(CHUNK), size, at)
    room[:] = os.urandom(size)
    return room


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("shift", [0, 1])
def test_whatever_lies_where_the_file_holds_it(tmp_path: Path, at: int, size: int, shift: int) -> None:
    file, data = tmp_path / "file", filled(size, at + shift)
    file.write_bytes(b"x" * (at + size + 9))
    writer = Writer()
    waiting = writer.write(file, at, data, direct=True)
    writer.close()
    assert file.read_bytes() == b"x" * at + bytes(data) + b"x" * 9
    first, last = whole_pages(data, at)
    if asked(tmp_path):
        assert waiting == size - (last - first)


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("at", PLACES)
def test_whatever_the_file_holds_is_read(tmp_path: Path, at: int, size: int) -> None:
    file, text = tmp_path / "file", os.urandom(at + size)
    file.write_bytes(text)
    reader, room = Reader(Ledger({}), frozenset({file})), room_in(buffer(CHUNK), size, at)
    reader.fill(whole("w", "U8", (size,), file, at).bands, room)
    reader.close()
    assert bytes(room) == text[at:]


def test_a_file_that_ends_too_early_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(CHUNK // 2 + 700))
    reader = Reader(Ledger({}), frozenset({file}))
    with pytest.raises(
        IntegrityError, match=f"ends at byte {CHUNK // 2 + 700}, {CHUNK // 2 - 700} bytes too early"
    ):
        reader.fill(whole("w", "U8", (CHUNK,), file, 0).bands, room_in(buffer(CHUNK), CHUNK))
    reader.close()


def test_a_file_system_that_refuses_is_asked_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refusing(fd: int, data: memoryview, at: int) -> int:
        asked.append(at)
        if len(asked) == 1:
            return os.pwrite(fd, data[:PAGE], at)  # some of it went well
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "O_DIRECT", 0)
    file, data = tmp_path / "file", filled(CHUNK, 0)
    file.touch()
    writer = Writer()
    writer._disk = Disk(os.O_WRONLY, refusing)
    assert writer.write(file, 0, data, direct=True) == CHUNK - PAGE
    assert writer.write(file, CHUNK, data, direct=True) == CHUNK
    assert file.read_bytes() == bytes(data) * 2
    assert asked == [0, PAGE]
    writer.close()


def test_a_broken_disk_is_no_refusal(tmp_path: Path) -> None:
    def broken(fd: int, data: memoryview, at: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "file").touch()
    disk = Disk(os.O_WRONLY, broken)
    with pytest.raises(OSError, match="Input/output error"):
        disk.move(tmp_path / "file", 0, filled(CHUNK, 0))
    disk.close()


def test_memory_and_what_the_kernel_makes_up_are_no_disks() -> None:
    assert not is_local(Path("/proc"))
    if Path("/dev/shm").is_mount():
        assert not is_local(Path("/dev/shm"))


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("neox", ConvertOptions(tp=2)),
        ("hf", ConvertOptions(shard_bytes=50_000)),
        ("nanotron", ConvertOptions()),
    ],
)
def test_there_and_back_past_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, options: ConvertOptions
) -> None:
    monkeypatch.setattr(buffers, "WORTH", 1)  # every page that a tensor fills
    source = make(tmp_path / "model", {**LLAMA, "hidden_size": 256, "intermediate_size": 600})
    moved: list[int] = []
    move = Disk.move

    def counted(self: Disk, path: Path, at: int, data: memoryview) -> tuple[int, int]:
        first, last = move(self, path, at, data)
        moved.append(last - first)
        return first, last

    monkeypatch.setattr(Disk, "move", counted)
    monkeypatch.setattr("hpctrain_plugins.checkpoints.work.is_local", lambda folder: True)
    convert(source, target, tmp_path / "disk", attrs.evolve(options, verify="roundtrip"))
    assert not asked(tmp_path) or sum(moved) > 500_000
    seen = len(moved)
    convert(source, target, tmp_path / "cache", attrs.evolve(options, fsync=False))
    assert len(moved) == seen
    convert(tmp_path / "disk", "hf", tmp_path / "back", ConvertOptions(verify="roundtrip"))
    assert texts(tmp_path / "disk") == texts(tmp_path / "cache")


def test_what_went_to_the_disk_is_not_left_in_memory(tmp_path: Path) -> None:
    file = asked(tmp_path)
    if file is None or cached(file):  # ext4 with a journal of all data takes it, and caches it
        pytest.skip(
            "the tests' folder is on no disk of this machine that can be written to without its cache"
        )
    source = make(tmp_path / "model", {**LLAMA, "vocab_size": 40_000})
    convert(source, "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    assert cached(source / "model.safetensors", 2 << 20)
    assert not cached(tmp_path / "out/model.safetensors", 2 << 20)


@pytest.mark.parametrize("harm", ["value", "padding", "noted"])
def test_what_is_wrong_where_it_was_written_is_found_when_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """A byte of a weight, one of the rows that fill up a vocabulary, or the checksum that a file notes."""
    sealed, noted = Copy.seal, Copy.crcs

    def damaged(self: Copy) -> list[list[int]]:
        crcs = sealed(self)
        parts = [(file, part) for file in self._files for part in file.parts]
        padded = [(f, p) for f, p in parts if any(s.file is None for b in p.tensor.bands for s in b.strips)]
        file, part = padded[0] if harm == "padding" else parts[0]
        with (next(p for p in self._paths if p.match(file.name))).open("r+b") as written:
            written.seek(part.offset + part.size - 1)
            written.write(b"!")
        return crcs

    if harm == "noted":
        monkeypatch.setattr(Copy, "crcs", lambda self, f: [crc ^ 1 for crc in noted(self, f)])
    else:
        monkeypatch.setattr(Copy, "seal", damaged)
    source = make(tmp_path / "model", {**GPT_NEOX, "vocab_size": 251})
    words = "differs between" if harm == "value" else "does not match its own"
    with pytest.raises(IntegrityError, match=words):
        convert(source, "neox", tmp_path / "out", ConvertOptions(tp=2, verify="roundtrip"))
    assert not (tmp_path / "out").exists()


def test_any_layout_comes_out_as_it_was_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors and columns of any size at any place, by threads that write into the same pages."""
    monkeypatch.setattr(buffers, "WORTH", 1)
    monkeypatch.setattr(writeback, "EVERY", 1 << 16)  # while the disk is busy with what the cache gives it
    source, chance = tmp_path / "source", random.Random(7)
    text = chance.randbytes(12 << 20)
    source.write_bytes(text)
    for number in range(12):
        parts, image = [], bytearray(chance.choice([8, 64, 1000]))
        for _ in range(chance.randint(1, 12)):
            image += bytes(chance.choice([0, 0, 56, 4000]))
            tensor, data = drawn(source, text, chance)
            parts.append(Part(len(image), tensor, "F32"))
            image += data
        root, file = tmp_path / f"{number}", OutFile("file", len(image), tuple(parts))
        with writeback.Writeback() as beside:
            copy = Copy(root, [file], None, beside, direct=True)
            copy.allocate()
            run(copy.tasks(), Ledger({}), threads=3)
        written = [whole("w", "F32", p.tensor.shape, root / "file", p.offset) for p in parts]
        pairs = [Pair(part.tensor, again, "x") for part, again in zip(parts, written, strict=True)]
        run(compare(pairs), Ledger({}), threads=3, on_disk=frozenset({root / "file"}))
        assert (root / "file").read_bytes() == image
        (root / "file").unlink()


def drawn(source: Path, text: bytes, chance: random.Random) -> tuple[Tensor, bytes]:
    """Some numbers of the source, every third time the left or right half of some rows, and their bytes."""
    size = 4 * chance.choice([2, 25, PAGE, 70_000, CHUNK // 4, CHUNK // 4 + 2, CHUNK // 2])
    start = chance.randrange((len(text) - size) // 4) * 4
    if size < 100 or chance.random() < 0.67:
        return whole("w", "F32", (size // 4,), source, start), text[start : start + size]
    rows, half = 8, size // 64 * 4
    side = chance.randint(0, 1)
    tensor = whole("w", "F32", (rows, half // 2), source, start).chunk(1, 2)[side]
    begins = [start + row * 2 * half + side * half for row in range(rows)]
    return tensor, b"".join(text[begin : begin + half] for begin in begins)
