"""The reader sees what PyYAML sees, and says where each value stands and what is not what it looks like."""

from __future__ import annotations

import io

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.errors import ConfigError
from hpctrain.ui.problem import problem_lines
from hpctrain.ui.term import Term
from hpctrain_plugins.trainers.external.config import merged
from hpctrain_plugins.trainers.external.kinds import trap_faults
from hpctrain_plugins.trainers.yaml_file import Yaml, dotted, number, read

TWICE = """\
data_stages:
  - name: stable
    data:
      dataset:
        hf_dataset_config_name: null
        hf_dataset_splits: train
        hf_dataset_config_name: wikitext-103-v1
"""


def _read(text: str, file: str = "a.yaml") -> Yaml:
    return read(text, file, "nanotron")


def _shown(problems: object) -> str:
    term = Term(stream=io.StringIO(), width=100)
    return "\n".join(problem_lines(problems, term))  # type: ignore[arg-type]


def test_a_key_that_stands_twice() -> None:
    found = _read(TWICE, "config_tiny_llama_wikitext.yaml")
    assert _shown(found.problems).splitlines() == [
        "error[yaml-duplicate]: hf_dataset_config_name appears twice, the second wins",
        "  --> config_tiny_llama_wikitext.yaml:7:9  data_stages[0].data.dataset",
        "7 |         hf_dataset_config_name: wikitext-103-v1",
        "  |         ^^^^^^^^^^^^^^^^^^^^^^",
        "  = note: first at line 5: null            (nanotron trains on the second)",
    ]
    assert found.data["data_stages"][0]["data"]["dataset"]["hf_dataset_config_name"] == "wikitext-103-v1"


def test_a_key_that_stands_three_times() -> None:
    (problem,) = _read("a: 1\nb: 2\na: {x: 1}\na: 3\n").problems
    assert problem.message == "a appears 3 times, the last wins"
    assert problem.notes[1] == "again at line 3: {…}"
    assert problem.span is not None
    assert problem.span.line == 4


def test_equal_keys_of_different_tables_are_not_twice() -> None:
    assert _read("a: {x: 1}\nb: {x: 1}\nc: [{x: 1}, {x: 2}]\n").problems == ()


@pytest.mark.parametrize(
    ("text", "kind", "says", "hint"),
    [
        ("lr: 1e-5", "float", "lr is the text '1e-5': a number with an exponent needs a dot", "lr: 1.0e-5"),
        ("lr: 5e5", "float", "lr is the text '5e5'", "lr: 5.0e+5"),
        ("lr: -2E-3", "", "lr is the text '-2E-3'", "lr: -2.0e-3"),
        ("lr: 1.5e3", "", "lr is the text '1.5e3'", "lr: 1.5e+3"),
        ("lang: no", "text", "lang is False: YAML 1.1 reads the word no as a truth value", 'lang: "no"'),
        ("lang: ON", "text", "lang is True: YAML 1.1 reads the word ON", 'lang: "ON"'),
        (
            "time: 12:30:00",
            "",
            "time is 45000: YAML 1.1 counts 12:30:00 to the base of 60",
            'time: "12:30:00"',
        ),
        ("port: 010", "int", "port is 8: YAML 1.1 reads 010 to the base of 8", 'port: "010"'),
        ("name: 2026-11-20", "text", "name is a date", 'name: "2026-11-20"'),
    ],
)
def test_traps_are_named_with_line_and_fix(text: str, kind: str, says: str, hint: str) -> None:
    config = merged("nanotron", [_read(f"# one\n{text}\n")], {})
    key = text.partition(":")[0]
    (fault,) = trap_faults(config, {(key,): kind})
    assert fault.code == "yaml-trap"
    assert fault.message.startswith(says)
    assert fault.hint == hint
    problem = config.problem(fault)
    assert problem.span is not None
    assert (problem.span.line, problem.where) == (2, key)
    fixed = yaml.safe_load(hint)[key]
    assert type(fixed) in (str, float)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("lr: 1.0e-5", "float"),
        ("lr: '1e-5'", "float"),
        ("rev: 1e5", "text"),
        ("on_gpu: yes", "truth"),
        ("lang: nb", "text"),
        ("lang: 'no'", "text"),
        ("time: '12:30:00'", "text"),
        ("n: 0", "int"),
        ("n: 10_000", "int"),
    ],
)
def test_what_is_what_it_looks_like_is_no_trap(text: str, kind: str) -> None:
    config = merged("nanotron", [_read(text)], {})
    assert not list(trap_faults(config, {(text.partition(":")[0],): kind}))


def test_a_setting_that_replaces_a_trap_removes_it() -> None:
    config = merged("nanotron", [_read("lr: 1e-5")], {"lr": 1e-5})
    assert not list(trap_faults(config, {}))
    assert config.get("lr") == 1e-5


@pytest.mark.parametrize("said", ["1e-5", "2E3", ".5e3", "1.e4", "+3e+2", "1_0e2"])
def test_the_fix_of_a_number_is_a_number(said: str) -> None:
    assert isinstance(yaml.safe_load(said), str)
    fixed = yaml.safe_load(number(said))
    assert fixed == pytest.approx(float(said.replace("_", "")))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\n\tb: 2\n", 2, "found character '\\t' that cannot start any token"),
        ("a: [1, 2\nb: 3\n", 2, "expected ',' or ']'"),
        ("a: 1\nb: {x: 1\n", 3, "expected ',' or '}'"),
        ("a: 1\n---\nb: 2\n", 2, "but found another document"),
        ("a: !!python/object:os.system x\n", 1, "could not determine a constructor"),
        ("a: *b\n", 1, "found undefined alias"),
        ("a: 1\nb: \x00\n", 2, "special characters are not allowed"),
        ("- 1\n- 2\n", 1, "a.yaml holds no keys"),
        ("", 1, "a.yaml holds no keys"),
        ("a: 2026-13-45\n", 1, "a.yaml cannot be read: month must be in 1..12"),
        ("a: &a [*a]\n", 1, "an alias is inside the value it names"),
        ("{[1]: 2}", 1, "found unhashable key"),
    ],
)
def test_what_is_no_yaml_is_one_problem_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(text)
    (problem,) = caught.value.problems
    assert problem.code == "yaml"
    assert says in problem.message
    assert problem.span is not None
    assert problem.span.line == line


def test_aliases_that_stand_for_a_billion_values_end_at_once() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(ConfigError, match="aliases expand to more than"):
        _read("\n".join(rows))


def test_deep_nesting_is_one_problem() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        _read("a: " + "[" * 3000 + "]" * 3000)


def test_a_key_that_is_no_text() -> None:
    (problem,) = _read("no: 1\n8: 2\n").problems
    assert problem.message == "the key no is not text: YAML 1.1 reads a bool"
    assert problem.hint == '"no":'


def test_merged_anchors_are_read_as_pyyaml_reads_them() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\n"
    found = _read(text)
    assert found.data == yaml.safe_load(text)
    assert found.problems == ()
    assert found.span(("more", "x")) == found.keys[("more",)]


KEYS = st.text("abcxyz_", min_size=1, max_size=6).filter(lambda k: k not in ("y", "n"))
LEAVES = st.one_of(st.integers(-9999, 9999), st.floats(allow_nan=False), st.booleans(), st.text(max_size=12))
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS, v, max_size=4), max_leaves=20
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=6), st.booleans())
@settings(max_examples=60, derandomize=True)
def test_values_and_places_of_any_file(values: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(values, default_flow_style=flow, allow_unicode=True)
    found = _read(text)
    assert found.data == yaml.safe_load(text)
    lines = text.splitlines()
    for path, span in found.keys.items():
        assert span.end is not None
        assert lines[span.line - 1][span.column - 1 : span.end - 1].strip("'\"? ") == path[-1]


def test_a_path_as_people_write_it() -> None:
    assert dotted(("data_stages", 0, "data", "dataset")) == "data_stages[0].data.dataset"
    assert dotted(()) == ""
