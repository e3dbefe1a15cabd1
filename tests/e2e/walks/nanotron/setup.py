"""A stand-in for nanotron that needs no GPU: it is installed, read and started as the real one is."""

from setuptools import setup

setup(name="nanotron", version="0.4", packages=["nanotron"])
