"""Automata compiled into transformers: exact weights for every construction of Liu et al. 2023."""
