"""What downloads are made of, and whether there is room; the programs are `fetch`, `hub` and `sdist`."""
