"""Automata: models."""
