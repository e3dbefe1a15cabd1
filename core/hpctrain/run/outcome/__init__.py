"""What became of a run: what it reached, saved and cost."""
