"""All that is found out and made before a plan may become a run."""
