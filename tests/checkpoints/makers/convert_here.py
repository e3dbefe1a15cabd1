"""`hpctrain convert` beside torch and transformers: SITE with hpctrain's packages, ROOT, its options."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import os
import sys


def main(site, root, *argv):
    sys.path += [f"{root}/core", f"{root}/plugins", site]  # behind torch's own, which must find its numpy
    os.environ["HF_HUB_OFFLINE"] = "1"
    from hpctrain.cli import app

    print(app.run(["convert", *argv]))


main(*sys.argv[1:])
