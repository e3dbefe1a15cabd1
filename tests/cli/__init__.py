"""How the command line speaks: streams, widths, codes, help, mistakes."""
