"""Files that others write too: reading them, adding to them in turns, and whose may be trusted."""
