"""What nanotron, GPT-NeoX and NeMo Automodel have in common: YAML of their own, checked before the queue."""
