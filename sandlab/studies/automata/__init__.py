"""Automata and shortcuts: what transformers learn of them, and how it breaks (Liu et al. 2023)."""
