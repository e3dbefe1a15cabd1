"""The model: what annotations say, taken apart once for all who ask."""
