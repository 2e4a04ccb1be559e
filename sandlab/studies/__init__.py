"""One module per published result: composes the rooms below into claims and figures."""

from sandlab.registry import lazy_room

__getattr__, __dir__ = lazy_room(__name__)
