"""Noise-contrastive estimation: lenses."""
