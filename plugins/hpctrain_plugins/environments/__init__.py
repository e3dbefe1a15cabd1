"""How an environment is built and entered."""
