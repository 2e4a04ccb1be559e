"""In-context n-grams: models."""
