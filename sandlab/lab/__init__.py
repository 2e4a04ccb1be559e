"""Running studies: jobs, seeds, cache, store, local / process / Ray execution, report."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
