"""The world: starting programs, writing files, run directories and the record of what happened."""
