"""Configs lead to their models, also where nothing but the config has been loaded, and explain their options."""

from __future__ import annotations

import dataclasses
import re

import sandlab as sl
from sandlab.models.base import Config, _models


def test_a_config_belongs_to_the_module_of_its_model() -> None:
    """A worker that unpickles a config loads the config's module; so does the version of the code in a result's key."""
    sl.names("models")
    apart = {config.__name__ for config, model in _models.items() if config.__module__ != model.__module__}
    assert apart == set()


def test_the_docstring_of_a_config_explains_every_option() -> None:
    sl.names("models"), sl.names("circuits")
    for config in [each for each in _models if each.__module__.startswith("sandlab.")]:  # not those of other tests
        text = " ".join(kind.__doc__ or "" for kind in config.__mro__ if issubclass(kind, Config))
        missing = [field.name for field in dataclasses.fields(config) if not re.search(rf"\b{field.name}\b", text)]
        assert not missing, f"{config.__name__} does not explain {', '.join(missing)}"
