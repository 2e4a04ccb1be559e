"""In-context n-grams: worlds."""
