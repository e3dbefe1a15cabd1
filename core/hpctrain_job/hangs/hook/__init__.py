"""The folder of the job's zip that is on the search path of a training where its pulse is wanted."""
