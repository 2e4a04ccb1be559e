"""Networks whose every activation can be read and replaced."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
