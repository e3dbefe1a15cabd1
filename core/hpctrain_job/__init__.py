"""What travels to the job as one zip: the standard library only, Python 3.10 or newer.

The files are programs that scripts start with `-m`, and what trainers import: `resume`, `signals`, `metrics`
and `fence`. The folders are what these are made of, and programs that are more than a file.
"""
