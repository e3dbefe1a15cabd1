"""Services that stand for the internet: standard library only, for any Python from 3.10 on."""
