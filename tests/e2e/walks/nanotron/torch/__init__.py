"""Stand-in for torch, which the images of a twin have not: only its launcher."""
