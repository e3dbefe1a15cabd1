"""The whole product through its command line, with real schedulers and real processes."""
