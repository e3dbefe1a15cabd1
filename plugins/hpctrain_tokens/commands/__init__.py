"""The commands, as arguments and functions that the command line and a step of a plan share."""
