"""Flip-flop languages: circuits."""
