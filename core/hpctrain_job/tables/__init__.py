"""The columns of data on disk, read with the standard library alone."""
