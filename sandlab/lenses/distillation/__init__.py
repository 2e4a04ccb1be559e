"""Measurements of implicit curricula: monomials, n-grams, non-terminals, attention paths, the theory of one step."""
