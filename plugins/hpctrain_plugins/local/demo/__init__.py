"""The demo: a small model learns on this computer, from nothing, with the real parts."""
