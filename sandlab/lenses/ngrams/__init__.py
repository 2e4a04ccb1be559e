"""In-context n-grams: lenses."""
