"""Noise-contrastive estimation: worlds."""
