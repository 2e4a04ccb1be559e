"""In-context n-grams: circuits."""
