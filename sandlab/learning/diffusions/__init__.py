"""Contrastive learning of diffusions: learning."""
