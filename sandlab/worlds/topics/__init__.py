"""Topic models: worlds."""
