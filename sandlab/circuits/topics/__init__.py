"""Topic models: circuits."""
