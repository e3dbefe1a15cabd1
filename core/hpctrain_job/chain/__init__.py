"""A training of several jobs: what happens next, what happened so far, and handing over one more job."""
