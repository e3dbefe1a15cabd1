"""The stand-in's package."""
