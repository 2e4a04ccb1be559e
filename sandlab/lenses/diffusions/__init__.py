"""Contrastive learning of diffusions: lenses."""
