"""Flip-flop languages: worlds."""
