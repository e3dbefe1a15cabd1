"""`[checkpoint] export`: the step that a plan has, and what it runs in the job."""
