"""Studies of transformers that are taught by checkpoints of larger ones."""
