"""What a machine says of its cluster's facts: questions made of the facts, answers of programs, findings.

A `Question` is a program with a limit and a function that reads what it wrote. Which questions there are
follows from the facts alone, so a stranger's cluster has its own without code.
"""
