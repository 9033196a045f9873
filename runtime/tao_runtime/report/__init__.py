"""Show a run on one self-contained HTML page."""
