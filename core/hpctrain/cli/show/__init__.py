"""What commands show: plans, explanations, the reference of keys, pictures."""
