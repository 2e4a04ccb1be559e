"""Tells Hugging Face's transformers about SandLab's models once it is imported, and never imports it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["watch_for_transformers"]

_NAME = "transformers"


class _Watch(MetaPathFinder):
    """Finds transformers as Python would, and registers our models when it has been loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def watch_for_transformers() -> None:
    """Register now when transformers is loaded already, otherwise when it will be."""
    if _NAME in sys.modules:
        _register()
    elif not any(isinstance(each, _Watch) for each in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def _register() -> None:
    from sandlab.models.hugging_face import register_with_transformers

    register_with_transformers()
