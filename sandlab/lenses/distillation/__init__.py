"""Measurements of implicit curricula: monomials, n-grams, non-terminals, attention paths, and the theory of one step."""
