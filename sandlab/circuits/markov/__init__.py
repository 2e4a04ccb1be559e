"""Markov chains and causal graphs: circuits."""
