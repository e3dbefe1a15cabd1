"""Each cluster rebuilt from real parts on one machine: see README.md for what is real and what is not."""
