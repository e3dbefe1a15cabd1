"""What is wrong with data: types, rules of a run and of facts, tokens; every mistake at once."""
