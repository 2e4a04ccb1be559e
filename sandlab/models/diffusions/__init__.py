"""Contrastive learning of diffusions: models."""
