"""The formats: each a module with `detect`, `read` and `plan`, and beside it what only it needs."""
