"""Structured data with a known truth: sampling, exact oracles, membership, latent structure."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
