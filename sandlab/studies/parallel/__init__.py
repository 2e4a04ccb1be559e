"""Generating in parallel: the studies."""
