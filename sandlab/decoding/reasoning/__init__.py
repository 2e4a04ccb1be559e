"""Chain of thought and state tracking: decoding."""
