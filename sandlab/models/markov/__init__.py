"""Markov chains and causal graphs: models."""
