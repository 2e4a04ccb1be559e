"""Circuits and graphs, with and without a chain of thought: studies."""
