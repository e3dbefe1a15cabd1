"""Stand-in for nanotron: there is nothing in it."""
