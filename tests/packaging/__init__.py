"""What users get: the wheels, installed without an index on every Python of this machine."""
