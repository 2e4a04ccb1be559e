"""Topic models: studies."""
