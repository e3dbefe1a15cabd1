"""What starting costs: CPU time beside `python -c pass`, and calls to the file system."""
