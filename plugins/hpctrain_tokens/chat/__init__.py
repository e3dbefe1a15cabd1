"""Conversations: templates, labels, the check of a file, the forms that trainers read."""
