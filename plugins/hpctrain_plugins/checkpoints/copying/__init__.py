"""From bytes in files to bytes in files: read, computed, checked, written, published; knows no format."""
