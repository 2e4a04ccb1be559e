"""What the pages ask for: functions from plain values to plain values, run in worker processes."""

from __future__ import annotations

from collections.abc import Callable

from sandlab.atlas.views.circuits import circuit
from sandlab.atlas.views.decoding import race, refine, walk
from sandlab.atlas.views.machine import devices, training
from sandlab.atlas.views.oracle import guess, predict, world, worlds
from sandlab.atlas.views.studies import cards, figure, history, standing
from sandlab.lab._store.plain import Facts

__all__ = ["VIEWS"]

_ALL = (
    figure, training, worlds, world, predict,
    guess, circuit, walk, race, refine, history, standing, cards, devices,
)  # fmt: skip
VIEWS: dict[str, Callable[..., Facts]] = {view.__name__: view for view in _ALL}
