"""Studies of Markov data with a causal graph."""
