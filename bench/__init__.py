"""What starting costs, beside other launchers: `make bench` writes README.md."""
