"""Find where a model is wrong, and choose what to teach it next."""
