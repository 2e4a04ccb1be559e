"""Exact transformers for sparse parity."""
