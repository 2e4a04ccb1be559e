"""Decoding on small trees, solved exactly."""
