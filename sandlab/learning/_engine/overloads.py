"""Functions of a model that give one result for a model and one per member for a population."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from torch import nn

from sandlab.learning.population import Population
from sandlab.worlds.base import World

__all__ = ["OneOrMany", "one_or_many"]

Options = ParamSpec("Options")
One = TypeVar("One", covariant=True)
Many = TypeVar("Many", covariant=True)


class OneOrMany(Protocol[Options, One, Many]):
    """`Many` for a population, `One` for any other module."""

    @overload
    def __call__(
        self, model: Population[nn.Module], world: World, *args: Options.args, **options: Options.kwargs
    ) -> Many: ...
    @overload
    def __call__(self, model: nn.Module, world: World, *args: Options.args, **options: Options.kwargs) -> One: ...


def one_or_many(
    only: Callable[[Many], One],
) -> Callable[[Callable[Concatenate[nn.Module, World, Options], Many]], OneOrMany[Options, One, Many]]:
    """Let a function that gives a result for every member give, for one model, the `only` result."""

    def decorate(function: Callable[Concatenate[nn.Module, World, Options], Many]) -> OneOrMany[Options, One, Many]:
        @functools.wraps(function)
        def chosen(model: nn.Module, world: World, *args: Options.args, **options: Options.kwargs) -> One | Many:
            results = function(model, world, *args, **options)
            return results if isinstance(model, Population) else only(results)

        return cast("OneOrMany[Options, One, Many]", chosen)

    return decorate
