"""`python -m hpctrain_trl --config trl.json` or the same settings as flags."""

import sys

from hpctrain_trl.train import main

sys.exit(main())
