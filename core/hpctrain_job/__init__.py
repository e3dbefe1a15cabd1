"""What travels to the job as one zip: the standard library only, Python 3.10 or newer."""
