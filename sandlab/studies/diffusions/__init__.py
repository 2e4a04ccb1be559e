"""Contrastive learning of diffusions: studies."""
