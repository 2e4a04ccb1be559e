"""Masked prediction of hidden Markov models: studies."""
