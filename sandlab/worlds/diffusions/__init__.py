"""Contrastive learning of diffusions: worlds."""
