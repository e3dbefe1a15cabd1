"""The steps of a run: executed here or handed to the scheduler, and the state that each is in."""
