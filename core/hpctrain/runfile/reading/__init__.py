"""From a file to data: TOML that may be anything, with the place of every key."""
