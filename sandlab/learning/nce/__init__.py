"""Noise-contrastive estimation: learning."""
