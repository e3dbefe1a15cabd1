"""Frozen values that hooks take and return; no module here reads the machine."""
