"""Chain of thought and state tracking: worlds."""
