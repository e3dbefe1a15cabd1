"""What several commands share: opening and finding runs, submitting, working on a node, waiting."""
