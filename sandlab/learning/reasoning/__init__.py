"""Chain of thought and state tracking: learning."""
