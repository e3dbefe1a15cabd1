"""Why a run failed, or hangs."""
