"""Turn records into tensors."""
