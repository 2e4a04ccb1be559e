"""Flip-flop languages: what attention gets wrong (Liu et al. 2023, "Exposing attention glitches")."""
