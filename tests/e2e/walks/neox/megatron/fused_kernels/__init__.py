"""Stand-in for the function that compiles NeoX's kernels, in each rank."""


def load(neox_args: object = None) -> None:
    """Never called: the example asks for no fused kernels, and a rank compiles none."""
    raise SystemExit("a rank compiled")
