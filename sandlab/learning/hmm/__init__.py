"""Masked prediction of hidden Markov models: learning."""
