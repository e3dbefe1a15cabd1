"""Conversations: labels of their tokens, the check of a file, and where a fault is in a row."""
