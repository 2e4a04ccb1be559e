"""Shapes in signatures are checked while the tests run: jaxtyping's import hook with a checker of arrays alone."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from jaxtyping import AbstractArray
from torch import Tensor


class ShapeError(TypeError):
    """An argument or a result does not have the shape or the kind that the signature says."""


def shapes_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its array arguments and its array result checked against the annotations."""
    if "Tensor," not in str(getattr(function, "__annotations__", "")):
        return function
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        hints = _hints(function)
        given = signature.bind(*args, **options).arguments
        for name, value in given.items():
            _check(function, name, hints.get(name), value)
        result = function(*args, **options)
        _check(function, "result", hints.get("return"), result)
        return result

    return checked


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):  # names that exist for type checkers only
        return {}


def _check(function: Callable[..., Any], name: str, hint: Any, value: Any) -> None:
    options = [each for each in (typing.get_args(hint) or (hint,)) if _is_array(each)]
    if isinstance(value, Tensor) and options and not any(isinstance(value, each) for each in options):
        got = f"{value.dtype} {tuple(value.shape)}"
        raise ShapeError(f"{function.__module__}.{function.__qualname__}: {name} must be {hint}, got {got}")


def _is_array(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, AbstractArray)
