"""Parameters and FLOPs of a model, before any weight exists."""
