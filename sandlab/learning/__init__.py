"""Objectives, optimisers, training of one model or of a population, estimators."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
