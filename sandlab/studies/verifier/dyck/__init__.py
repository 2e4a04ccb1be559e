"""Decoding of Dyck words with a verifier: studies."""
