"""Runs that live, followed while they grow."""
