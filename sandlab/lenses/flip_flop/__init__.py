"""Flip-flop languages: lenses."""
