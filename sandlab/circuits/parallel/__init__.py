"""Markov chains with product transitions as weights of a transformer."""
