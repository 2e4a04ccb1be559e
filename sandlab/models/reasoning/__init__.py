"""Chain of thought and state tracking: models."""
