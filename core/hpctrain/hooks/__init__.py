"""The plugin mechanism: the hooks themselves, the one scan, loading by name, calling with attribution."""
