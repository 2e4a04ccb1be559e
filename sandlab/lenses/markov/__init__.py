"""Markov chains and causal graphs: lenses."""
