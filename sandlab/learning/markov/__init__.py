"""Markov chains and causal graphs: learning."""
