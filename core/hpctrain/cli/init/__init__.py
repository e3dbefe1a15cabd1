"""What `init` writes, and how it reads the answers of an unknown machine."""
