"""Find every fault that can be known before launch."""
