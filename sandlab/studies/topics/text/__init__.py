"""Topics in encoders of natural language."""
