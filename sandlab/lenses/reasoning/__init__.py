"""Chain of thought and state tracking: lenses."""
