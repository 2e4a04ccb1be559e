"""Flip-flop languages: models."""
