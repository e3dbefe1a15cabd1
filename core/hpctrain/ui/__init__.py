"""What people see: text, tables, plots, progress and problems; standard library only.

Nothing here asks a question or knows a command. A `Term` says what a stream can show; every other
module turns values into lines for it.
"""
