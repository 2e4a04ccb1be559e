"""Nulls: the settings of a study without its effect."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sandlab.learning.experiment import Training

__all__ = ["untrained"]

Settings = TypeVar("Settings")


def untrained(settings: Settings) -> Settings:
    """The same settings with every learning rate 0 and one step per evaluation: weights stay as they were drawn."""
    if isinstance(settings, Training):
        return replace(settings, lr=0.0, steps=settings.evals, warmup=0)
    if isinstance(settings, tuple):
        return tuple(map(untrained, settings))  # type: ignore[return-value]
    if not is_dataclass(settings) or isinstance(settings, type):
        return settings
    changed: dict[str, Any] = {each.name: untrained(getattr(settings, each.name)) for each in fields(settings)}
    return replace(settings, **{each.name: changed[each.name] for each in fields(settings) if each.init})
