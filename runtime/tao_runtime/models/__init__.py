"""Load, adapt and export models."""
