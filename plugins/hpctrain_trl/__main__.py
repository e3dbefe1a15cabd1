"""`python -m hpctrain_trl --config trl.json` or the same settings as flags."""

from hpctrain_trl import environment
from hpctrain_trl.train import main

environment.end(main())
