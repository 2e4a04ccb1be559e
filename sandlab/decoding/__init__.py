"""Inference algorithms: samplers, verifiers, backtracking, Markov chains on trees."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
