"""Test cases of small programs, written with a verifier: studies."""
