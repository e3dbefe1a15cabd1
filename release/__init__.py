"""What makes a release: its version in every file that states it, and the project's address."""
