"""Bring one file from the internet, whatever the way there is like.

`python -m hpctrain_job.fetch URL --into PATH --partial FOLDER [--sha256 HEX]`. What has arrived
stays in FOLDER, so that a second call continues; PATH appears at the end by one rename.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpctrain_job.downloads.credentials import bare
from hpctrain_job.downloads.partial import claim, move
from hpctrain_job.downloads.proof import Proof
from hpctrain_job.downloads.web import Failed, Patience, WrongContent, transfer

Say = Callable[[str], None]


def download(
    url: str,
    target: Path,
    *,
    proof: Proof | None = None,
    headers: Mapping[str, str] | None = None,
    patience: Patience | None = None,
    say: Say = print,
) -> None:
    """Bring `url` to `target`, continuing what is there; content that fails `proof` is fetched once more."""
    proof = proof or Proof()
    if target.exists() and proof.has_digest and not proof.complaint(target):
        say(f"{target.name}: already here")
        return
    part = target.with_name(target.name + ".part")
    for last in (False, True):
        transfer(url, part, headers=headers or {}, size=proof.size, patience=patience, say=say)
        complaint = proof.complaint(part)
        if not complaint:
            part.replace(target)
            part.with_name(part.name + ".etag").unlink(missing_ok=True)
            return
        part.unlink()
        if last:
            raise WrongContent(f"{bare(url)}: {complaint}")
        say(f"{target.name}: {complaint}; once more from the beginning")


def guarded(action: Callable[[], None]) -> int:
    """Run `action`; a failure that we foresee becomes one line and its exit code."""
    try:
        action()
    except Failed as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.fetch", description="bring one file")
    parser.add_argument("url")
    parser.add_argument("--into", required=True, type=Path)
    parser.add_argument("--partial", required=True, type=Path)
    parser.add_argument("--sha256", default="")
    parser.add_argument("--tries", type=int, default=Patience.tries)
    args = parser.parse_args(argv)

    def bring() -> None:
        with claim(args.partial, args.into) as folder:
            arrived = folder / "content"
            patience = Patience(tries=args.tries)
            download(args.url, arrived, proof=Proof(sha256=args.sha256), patience=patience)
            move(arrived, args.into)

    return guarded(bring)


if __name__ == "__main__":
    sys.exit(main())
