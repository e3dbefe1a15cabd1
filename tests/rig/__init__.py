"""A real Slurm for tests: controller, nodes and munge in namespaces of their own, gone with the test."""
