"""The list of what an image has: how it is asked, written and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import listing, packages


def test_what_a_python_has_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert packages.main() == 0
    text = capsys.readouterr().out
    listed = listing.read(text)
    assert listed.packages["pytest"] == pytest.__version__
    assert listed.python.startswith("3.")
    assert listing.read(listing.one_line(listed)) == listed
    assert "\n" not in listing.one_line(listed)


def test_lines_of_a_constraint_file_about_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "constraint.txt"
    rows = (
        "# a comment",
        "pytest==1.0",
        "-c other.txt",
        "No.Such_Package >= 1.5 ; python_version>'3'  # why",
    )
    file.write_text("\n".join((*rows, "wheel_at @ file:///opt/x.whl", "absent==2.0")) + "\n")
    here = packages.listing_here({"PIP_CONSTRAINT": f"{file} {tmp_path}/none", "HOME": str(tmp_path)})
    assert here.constraints == ("No.Such_Package >= 1.5 ; python_version>'3'", "absent==2.0")
    assert here.facts["constraint-file"].startswith("3 lines ")
    assert here.constraints_kept(["no-such_package"]) == ["absent==2.0"]
    (tmp_path / "pip.conf").write_text(f"[install]\nconstraint = {file}\n")
    told = packages.listing_here({"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "HOME": str(tmp_path)})
    assert told.constraints == here.constraints


def test_versions_that_pip_cannot_compare_constrain_nothing() -> None:
    text = "# python 3.12 aarch64\npython-apt==2.7.7+ubuntu4\ndistro-info==1.7build1\nnumpy==1.26.4\n"
    assert listing.read(text).packages_kept(["NumPy"]) == {"python-apt": "2.7.7+ubuntu4"}


def test_a_list_of_an_earlier_release_is_read() -> None:
    assert listing.read("# python 3.12 aarch64\ntorch==2.8.0a0+abc\n") == listing.Listing(
        python="3.12", arch="aarch64", packages={"torch": "2.8.0a0+abc"}, constraints=(), facts={}
    )
