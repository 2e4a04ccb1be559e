"""SandLab: language models meet structured data whose truth is known exactly.

    import sandlab as sl

    world = sl.worlds.InContextMarkov(states=3, order=1, length=64)
    model = sl.models.Transformer(vocab=3, length=64, layers=2, heads=1, width=32)
    sl.learning.train(model, world, steps=2000, batch_size=64, rng=sl.rng(1))
    sl.run("markov/induction-heads", preset="quick")

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

from sandlab._transformers_hook import watch_for_transformers
from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.registry import get, names, register

__version__ = "0.2.0"

ROOMS = ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab", "atlas")
_SHORTCUTS = {
    "figures": "sandlab",
    "patch": "sandlab.models.hooks",
    "record": "sandlab.models.hooks",
    "run": "sandlab.lab.run",
}

__all__ = ["BadInput", "get", "names", "register", "rng", *ROOMS, *_SHORTCUTS]


def __getattr__(name: str) -> Any:
    if name in ROOMS or name == "figures":
        return importlib.import_module(f"sandlab.{name}")
    if name in _SHORTCUTS:
        return getattr(importlib.import_module(_SHORTCUTS[name]), name)
    raise AttributeError(f"sandlab has no {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


watch_for_transformers()
