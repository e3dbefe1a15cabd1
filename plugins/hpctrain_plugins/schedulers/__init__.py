"""How jobs are rendered, submitted and asked about. Only modules here speak a scheduler's words."""
