"""What lies in a run's directory, and where its directories are listed."""
