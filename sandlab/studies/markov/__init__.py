"""Markov chains: what one and two layers of attention learn of them, and why."""
