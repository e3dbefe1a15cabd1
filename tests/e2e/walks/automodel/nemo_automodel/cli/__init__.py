"""The stand-in's command line."""
