"""`python -m hpctrain`: the same program for an interpreter that is not first on the path."""

from hpctrain.cli import program

program()
