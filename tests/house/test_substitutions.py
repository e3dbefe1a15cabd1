"""Tests set nothing, and walks change nothing, but for the rows of tests/twin/substitutions.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hpctrain.runfile.reading.toml import loads
from tests.house.sources import ROOT
from tests.twin import adapted

TABLE = ROOT / "tests/twin/substitutions.toml"
MOST, MOST_KEYS = 18, 53
"""Rows, and changed keys of examples, that are accepted; fewer are better, and more are refused."""
WORDS = re.compile(
    r"(?:SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL|AWS)_CA_BUNDLE|GIT_SSL_\w+|NODE_EXTRA_CA_CERTS"
    r"|(?:UV|PIP)_[A-Z][A-Z_]+|HF_HUB_DISABLE_XET|--(?:system-certs|native-tls|trusted-host|allow-insecure-host))"
    r"(?![A-Z_*])"
)
COMMANDS = re.compile(r"\.replace\(\"([^\"]+)\"")
"""What a walk replaces in the lines of a page."""
EXAMPLES: dict[str, Callable[[str], str]] = {
    "hpc_alps/hpc_alps/examples/nanotron-wikitext.toml": lambda text: adapted.alps(text, "0" * 40),
    "hpc_frontier/hpc_frontier/examples/tutorial.toml": lambda text: adapted.frontier(text, "3.0"),
    "hpc_isambard/hpc_isambard/examples/neox-pretrain.toml": lambda text: adapted.isambard(
        text, "/x", ("a",)
    ),
    "hpc_leonardo/hpc_leonardo/examples/nemotron-lora.toml": lambda text: adapted.leonardo(
        text, '\npython = "3.0"'
    ),
    "hpc_olivia/hpc_olivia/examples/sft-1gpu.toml": adapted.olivia,
}
KINDS = (".py", ".sh", ".toml")
SELF = {TABLE, ROOT / "tests/house/test_substitutions.py"}
SUBJECTS = {
    ROOT / "tests/environments/test_index_failures.py",
    ROOT / "tests/environments/test_index_login.py",
    ROOT / "tests/environments/test_image_list.py",
    ROOT / "tests/environments/test_image_pip.py",
    ROOT / "tests/environments/nvidia.py",
    ROOT / "tests/twin/services/image.py",
    ROOT / "tests/e2e/canaries.py",
    ROOT / "tests/doctor/test_bad_input.py",
    ROOT / "tests/doctor/test_facts.py",
}
"""Tests of these very variables: what a user or an image sets, and what hpctrain makes of it."""


def uses() -> Iterator[tuple[str, str]]:
    """Word and file, wherever a test or its helpers name one of the variables and options."""
    for path in sorted((ROOT / "tests").rglob("*")):
        relative = path.relative_to(ROOT)
        if path in SELF | SUBJECTS or path.suffix not in KINDS or relative.parts[1] == "golden":
            continue
        text = _code(path.read_text(encoding="utf-8"))
        pages = COMMANDS.findall(text) if path.name.startswith("test_readme_") else []
        for word in {*WORDS.findall(text), *pages}:
            yield word, str(relative)


def _code(text: str) -> str:
    """Without whole-line comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def test_every_substitution_is_in_the_table() -> None:
    rows = loads(TABLE.read_text(encoding="utf-8"))["row"]
    listed = {(row["word"], row["file"]) for row in rows}
    found = set(uses())
    assert found - listed == set(), "a user has none of these: do without, or add a row with its reason"
    assert listed - found == set(), "nothing uses these any more: take the rows away"
    assert len(rows) == len(listed) <= MOST
    assert all(len(row["reason"]) > 30 for row in rows)


def test_the_rule_sees_what_it_forbids() -> None:
    seen = WORDS.findall(
        'env={"SSL_CERT_FILE": 1}; UV_NATIVE_TLS=1 PIP_CONSTRAINT=x pip --trusted-host h; "PIP_"'
    )
    assert COMMANDS.findall('line.replace(" g999", account)') == [" g999"]
    assert seen == ["SSL_CERT_FILE", "UV_NATIVE_TLS", "PIP_CONSTRAINT", "--trusted-host"]


def flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Dotted keys and their values."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def changed(name: str) -> set[str]:
    """The keys of a shipped example that are others on a twin, gone there, or new."""
    text = (ROOT / name).read_text(encoding="utf-8")
    before, after = flat(loads(text)), flat(loads(EXAMPLES[name](text)))
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def test_every_changed_key_of_an_example_is_in_the_table() -> None:
    rows = loads(TABLE.read_text(encoding="utf-8"))["example"]
    assert {row["file"] for row in rows} == EXAMPLES.keys()
    assert sum(len(changed(name)) for name in EXAMPLES) <= MOST_KEYS
    for name in EXAMPLES:
        listed = {key for row in rows if row["file"] == name for key in row["keys"]}
        covered = {key: {k for k in changed(name) if k == key or k.startswith(f"{key}.")} for key in listed}
        assert changed(name) == set().union(*covered.values()), name
        assert all(covered.values()), f"{name}: rows of what is no longer changed"
    assert all(len(row["reason"]) > 30 for row in rows)


def test_walks_change_examples_in_one_place() -> None:
    """In adapted.py, whose changes are counted above; a run that must fail is a run of the test's own."""
    walks = sorted((ROOT / "tests/twin").glob("test_walk_*.py"))
    lines = [line for path in walks for line in path.read_text(encoding="utf-8").splitlines()]
    begins = (ROOT / "tests/twin").glob("test_readme_*.py")
    found = [line for line in lines if re.search(r"re\.sub\(|\.replace\((?!.*\"asks\")", line)]
    found += [path.name for path in begins if "re.sub(" in path.read_text(encoding="utf-8")]
    assert found == []
    assert len(walks) == 5
