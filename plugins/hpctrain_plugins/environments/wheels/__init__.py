"""Environments of wheels: what is asked, locked, built and proved, whichever technology installs them."""
