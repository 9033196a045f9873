"""Work on whole annotation files."""
