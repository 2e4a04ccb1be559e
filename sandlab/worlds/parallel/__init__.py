"""Masked language models: Ising models, small exponential families, toy translation, aligned texts."""
