"""Generating with a verifier: what it saves, and what backtracking adds."""
