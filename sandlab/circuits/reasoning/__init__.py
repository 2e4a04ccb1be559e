"""Chain of thought and state tracking: circuits."""
