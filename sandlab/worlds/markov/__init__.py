"""Markov chains and causal graphs: worlds."""
