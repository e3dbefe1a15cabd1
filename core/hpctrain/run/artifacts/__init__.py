"""What was published for all runs: whether it is whole, and what killed builders left of it."""
