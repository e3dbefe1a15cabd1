"""Everything that data can be, and what the command says: exit code, line, and what skipping leaves."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import attrs
import pytest

from hpctrain_job.exit_codes import CONFIG
from hpctrain_tokens import manifest, pieces
from hpctrain_tokens.__main__ import main
from tests.data import reference
from tests.data.conftest import Make

GOOD = b'{"text": "a good row"}\n'


@attrs.frozen
class Case:
    """`rows` stand behind three good ones; `left` documents remain with skipping, None: it fails too."""

    rows: bytes
    code: str = ""
    line: int = 4
    column: int = 1
    left: int | None = 3
    first: bytes = GOOD * 3
    name: str = "data.jsonl"
    hint: str = ""

    @property
    def exit(self) -> int:
        return CONFIG if self.code else 0


CASES = {
    "blank": Case(b"\n", "blank-row"),
    "blank with spaces": Case(b"   \r\n", "blank-row"),
    "truncated": Case(b'{"text": "cut of', "truncated-row", column=17),
    "truncated in a value": Case(b'{"text": \n', "truncated-row", column=10),
    "not json": Case(b"{text: 1}\n", "not-json", column=2),
    "null": Case(b"null\n", "not-object"),
    "number": Case(b"5\n", "not-object"),
    "list": Case(b'["a", "b"]\n', "not-object"),
    "null text": Case(b'{"text": null}\n', "not-text", column=10),
    "number text": Case(b'{"text": 5}\n', "not-text", column=10),
    "list text": Case(b'{"text": ["a"]}\n', "not-text", column=10),
    "missing key": Case(b'{"txt": "a"}\n', "row-key"),
    "invalid utf-8": Case(b'{"text": "caf\xe9"}\n', "not-utf8", column=14),
    "lone surrogate": Case(rb'{"text": "\ud800"}' + b"\n", "surrogate", column=10),
    "NUL byte": Case(b'{"text": "a\x00b"}\n', "not-json", column=12),
    "escaped NUL": Case(rb'{"text": "a\u0000b"}' + b"\n", left=4),
    "no final newline": Case(GOOD[:-1], left=4),
    "byte order mark": Case(GOOD, first=b"\xef\xbb\xbf" + GOOD * 3, left=4),
    "byte order mark inside": Case(b"\xef\xbb\xbf" + GOOD, "not-json"),
    "two objects": Case(GOOD[:-1] + GOOD, "not-json", column=23),
    "CRLF": Case(GOOD, first=GOOD.replace(b"\n", b"\r\n") * 3, left=4),
    "duplicate keys, one in disguise": Case(rb'{"text": "a", "te\u0078t": "b"}' + b"\n", "row-duplicate"),
    "one list in one line": Case(b'[{"text": "a"}]\n', "not-object", hint="jq -c '.[]'"),
    "one list in many lines": Case(
        b'[\n{"text": "b"}]', "truncated-row", 1, 2, None, b"", hint="jq -c '.[]'"
    ),
    "one object in many lines": Case(b'{\n"text": 1\n}', "truncated-row", 1, 2, None, b"", hint="jq -c '.'"),
    "duplicate keys": Case(b'{"text": "a", "text": "b"}\n', "row-duplicate"),
    "deep": Case(b'{"text": ' + b"[" * 100_000 + b"\n", "not-json"),
    "long number": Case(b'{"text": ' + b"9" * 5000 + b"}\n", "not-json"),
    "end of document inside": Case(b'{"text": "a<|endoftext|>b"}\n', "eod-inside"),
    "empty text": Case(b'{"text": ""}\n', left=3),
    "empty file": Case(b"", "no-rows", first=b"", line=0, left=None),
    "only blank lines": Case(b"\n\n", "blank-row", first=b"", line=1, left=None),
    "all bad": Case(b"5\n", "not-object", first=b"6\n", line=1, left=None),
    "gz": Case(GOOD, left=4, name="data.jsonl.gz"),
    "gz that ends early": Case(b"cut", "data-truncated", line=0, left=None, name="data.jsonl.gz"),
    "not a gz": Case(b"plain", "data-unreadable", line=0, left=None, name="data.jsonl.gz"),
    "unknown kind": Case(GOOD, "input-kind", line=0, left=None, name="data.xlsx"),
}


def put(case: Case, folder: Path) -> Path:
    path = folder / case.name
    data = case.first + case.rows
    if case.name.endswith(".gz") and case.rows != b"plain":
        data = gzip.compress(data * 500)[:-12] if case.rows == b"cut" else gzip.compress(data)
    path.write_bytes(data)
    return path


def run(path: Path, tokenizer: Path, *more: str) -> int:
    out = path.parent / "out"
    return main(
        ["prepare", str(path), "--output-prefix", str(out / "x"), "--tokenizer", str(tokenizer), *more]
    )


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input(
    case: Case, engine: str, tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(case, tmp_path)
    assert run(path, tokenizer, "--engine", engine) == case.exit
    said = capsys.readouterr()
    made = sorted(p.name for p in (tmp_path / "out").rglob("*"))
    if not case.code:
        assert not said.err.startswith("error")
        assert len(reference.read(tmp_path / "out/x_text_document")) == case.left
        return
    assert said.err.startswith(f"error[{case.code}]: ")
    if case.line:
        assert f"--> {path}:{case.line}:{case.column}" in said.err
    assert case.hint in said.err.partition("help: ")[2]
    assert "help: " in said.err, "it says what to do"
    assert made == [], "nothing is half written"


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.code], ids=[n for n, c in CASES.items() if c.code]
)
def test_bad_rows_left_out(
    case: Case, tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(case, tmp_path)
    code = run(path, tokenizer, "--on-bad", "skip")
    if case.left is None:
        assert code == CONFIG
        assert "error[" in capsys.readouterr().err
        assert list((tmp_path / "out").rglob("*")) == []
        return
    assert code == 0
    prefix = tmp_path / "out/x_text_document"
    assert len(reference.read(prefix)) == case.left
    told = manifest.read(Path(f"{prefix}.manifest.json"))
    assert [(row["code"], row["line"]) for row in told["bad"]] == [(case.code, case.line)]
    assert "skipped 1 row" in capsys.readouterr().out


def test_row_11_of_1000(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The row that made other tools stop after ten documents with exit code 0."""
    rows = [{"text": f"row {i}"} for i in range(1, 1001)]
    rows[10] = {"txt": "row 11"}
    path = reference.jsonl(tmp_path / "a.jsonl", rows)
    assert run(path, tokenizer) == CONFIG
    assert f"{path}:11:1" in capsys.readouterr().err
    assert list((tmp_path / "out").rglob("*")) == []
    assert run(path, tokenizer, "--skip-bad") == 0
    prefix = tmp_path / "out/x_text_document"
    assert len(reference.read(prefix)) == 999
    assert [row["line"] for row in json.loads(Path(f"{prefix}.manifest.json").read_text())["bad"]] == [11]


def test_the_cap(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}, *[5] * 101])
    assert run(path, tokenizer, "--on-bad", "skip") == CONFIG
    assert "error[too-many-bad]: 101 rows are bad, 100 may be left out" in capsys.readouterr().err
    assert run(path, tokenizer, "--on-bad", "skip", "--max-bad", "101") == 0


def test_an_earlier_result_with_bad_rows_is_judged_again(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}, 5])
    assert run(path, tokenizer, "--on-bad", "skip") == 0
    assert run(path, tokenizer) == CONFIG
    assert f"{path.name}:2:1" in capsys.readouterr().err


def test_a_row_of_100_megabytes(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(GOOD + b'{"text": "')
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n' + GOOD)
    assert path.stat().st_size > 2 * pieces.LONGEST
    assert run(path, tokenizer) == CONFIG
    assert f"error[long-row]: the row is longer than 16 MiB\n  --> {path}:2:1" in capsys.readouterr().err
    assert run(path, tokenizer, "--on-bad", "skip", "--workers", "2") == 0
    assert len(reference.read(tmp_path / "out/x_text_document")) == 2


def test_a_tokenizer_without_an_end(
    tmp_path: Path, make_tokenizer: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = make_tokenizer("bare", special=("<pad>",), eos_token=None)
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    assert run(path, bare) == CONFIG
    assert "error[no-eod]: the tokenizer has no <|endoftext|>" in capsys.readouterr().err
    assert list((tmp_path / "out").rglob("*")) == []
    assert run(path, bare, "--no-eod") == 0
    assert run(path, bare, "--eod", "<pad>", "--force") == 0


@pytest.mark.parametrize(("special", "ends"), [("keep", 2), ("text", 1)])
def test_the_end_inside_of_a_row(tmp_path: Path, tokenizer: Path, special: str, ends: int) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a<|endoftext|>b"}])
    assert run(path, tokenizer, "--special", special) == 0
    assert reference.read(tmp_path / "out/x_text_document")[0].count(0) == ends


def test_a_template_that_raises(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}x"
        "{% endfor %}"
    )
    good = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    bad = {"messages": [{"role": "tool", "content": "a"}]}
    path = reference.jsonl(tmp_path / "a.jsonl", [good, bad])
    assert run(path, tokenizer, "--chat-template", str(template)) == CONFIG
    said = capsys.readouterr().err
    assert f"error[chat-refused]: the chat template refuses it: no tools\n  --> {path}:2:1" in said
    assert run(path, tokenizer, "--chat-template", str(template), "--skip-bad") == 0
    assert len(reference.read(tmp_path / "out/x_messages_document")) == 1


def test_a_template_that_is_no_template(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.jinja").write_text("\n{% for %}")
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": [{"role": "user", "content": "a"}]}])
    assert run(path, tokenizer, "--chat-template", str(tmp_path / "t.jinja")) == CONFIG
    assert "error[chat-template]: line 2 of the template" in capsys.readouterr().err


BESIDE = {
    "a configuration cut off": ("tokenizer_config.json", b'{"eos', "data-tokenizer"),
    "a configuration that is a list": ("tokenizer_config.json", b"[1]", "data-tokenizer"),
    "a tokenizer cut off": ("tokenizer.json", b"{", "data-tokenizer"),
    "a template of other letters": ("chat_template.jinja", b"\xff{{", "chat-template"),
}


@pytest.mark.parametrize(("name", "data", "code"), BESIDE.values(), ids=BESIDE)
def test_a_broken_file_of_the_tokenizer(
    name: str, data: bytes, code: str, tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "tokenizer"
    shutil.copytree(tokenizer, broken)
    (broken / name).write_bytes(data)
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": [{"role": "assistant", "content": "a"}]}])
    assert run(path, broken) == CONFIG
    said = capsys.readouterr().err
    assert said.startswith(f"error[{code}]: ")
    assert f"--> {broken / name}" in said
    assert list((tmp_path / "out").rglob("*")) == []


@pytest.mark.parametrize("option", ["--max-bad", "--workers", "--model-vocab"])
def test_numbers_below_zero(
    option: str, tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    assert run(path, tokenizer, f"{option}=-1") == CONFIG
    assert f"argument {option}: -1 is not a whole number from 0 up" in capsys.readouterr().err
