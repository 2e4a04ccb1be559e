"""Topic models: models."""
