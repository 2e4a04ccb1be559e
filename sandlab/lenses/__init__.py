"""Measurements of a model on a world: attention, probes, gradients, distances, loss landscapes."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
