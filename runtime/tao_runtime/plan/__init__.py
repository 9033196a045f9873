"""Say before launch what a run will need."""
