"""A stand-in for NeMo Automodel that needs no GPU: it is installed, read and started as the real one is."""

from setuptools import setup

setup(name="nemo-automodel", version="0.3.0rc0", packages=["nemo_automodel", "nemo_automodel.cli"])
