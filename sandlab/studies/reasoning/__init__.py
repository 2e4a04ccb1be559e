"""Chain of thought and state tracking: studies."""
