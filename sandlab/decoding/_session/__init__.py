"""The state of a batch of strings while they are decoded."""
