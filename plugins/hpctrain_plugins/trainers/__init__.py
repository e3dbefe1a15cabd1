"""How a trainer is started, and as data how it is read."""
