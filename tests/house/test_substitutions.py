"""Tests set nothing that a user would not have, but for the rows of tests/twin/substitutions.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.runfile.reading.toml import loads
from tests.house.sources import ROOT

TABLE = ROOT / "tests/twin/substitutions.toml"
MOST = 18
"""Rows that are accepted; fewer are better."""
WORDS = re.compile(
    r"(?:SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL|AWS)_CA_BUNDLE|GIT_SSL_\w+|NODE_EXTRA_CA_CERTS"
    r"|\^\(compile\|python\)|(?:UV|PIP)_[A-Z][A-Z_]+|HF_HUB_DISABLE_XET|--(?:system-certs|native-tls|trusted-host|allow-insecure-host))"
    r"(?![A-Z_*])"
)
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
        for word in set(WORDS.findall(_code(path.read_text(encoding="utf-8")))):
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
    assert WORDS.findall("re.sub(r'^(compile|python) = .*', '', text)") == ["^(compile|python)"]
    assert seen == ["SSL_CERT_FILE", "UV_NATIVE_TLS", "PIP_CONSTRAINT", "--trusted-host"]
