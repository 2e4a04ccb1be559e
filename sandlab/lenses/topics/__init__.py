"""Topic models: lenses."""
