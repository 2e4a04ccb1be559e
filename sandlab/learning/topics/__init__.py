"""Topic models: learning."""
