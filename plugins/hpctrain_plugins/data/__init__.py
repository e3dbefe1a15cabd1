"""Data in the control plane: the asset that is made from other assets, and the command."""
