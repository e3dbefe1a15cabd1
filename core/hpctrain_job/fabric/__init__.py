"""Which network each node of a training took, by the lines that NCCL or RCCL writes when it begins.

`lines.py` reads them (pure), `watch.py` follows the ranks' logs beside the training and says what follows.
"""
