"""Decoding algorithms."""
