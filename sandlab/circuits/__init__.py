"""Exact weights: algorithms and automata compiled into models."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
