"""Masked prediction of hidden Markov models: lenses."""
