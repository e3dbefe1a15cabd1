"""This machine: the only place where programs are started and files are written."""
