"""From a plan and a binding to files: pure, and the only place where words become text."""
