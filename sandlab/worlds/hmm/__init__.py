"""Masked prediction of hidden Markov models: worlds."""
