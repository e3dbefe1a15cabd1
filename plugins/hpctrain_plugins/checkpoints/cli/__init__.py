"""What people type: `hpctrain convert` and `convert --job`."""
