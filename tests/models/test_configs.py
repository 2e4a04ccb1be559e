"""Configs lead to their models, also where nothing but the config has been loaded."""

from __future__ import annotations

import sandlab as sl
from sandlab.models.base import _models


def test_a_config_belongs_to_the_module_of_its_model() -> None:
    """A worker that unpickles a config loads the config's module; so does the version of the code in a result's key."""
    sl.names("models")
    apart = {config.__name__ for config, model in _models.items() if config.__module__ != model.__module__}
    assert apart == set()
