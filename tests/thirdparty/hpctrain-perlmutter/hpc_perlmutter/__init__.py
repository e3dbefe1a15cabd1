"""NERSC's Perlmutter: facts alone."""

HPCTRAIN_API = 1
