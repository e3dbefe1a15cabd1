"""From text to `RunSpec` and `Cluster`: layers, strictness, positions, schema."""
