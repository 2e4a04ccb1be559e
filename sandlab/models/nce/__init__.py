"""Noise-contrastive estimation: models."""
