"""Automata: lenses."""
