"""How many of torch's threads a training on a CPU takes, where nobody has said it.

A product of small matrices is over before a second thread has woken up, and on a machine with other work the threads
of each product wait for each other: eight members of 28 000 weights took 159 to 203 s with two threads and 15 s with
one, on two cores shared with six other processes.

The version of a result passes over the mark `@few_threads` (`sandlab.lab._exec.imports.read_source`): a job has settled
its threads before it trains. Write it as here, in lines of its own:

    from sandlab.learning._engine.threads import few_threads

    @few_threads
    def train(model: nn.Module, ...): ...
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TypeVar, cast

import torch
from torch import nn

from sandlab.learning.population import Population

__all__ = ["MANY", "few_threads"]

# Weights of one member from which on a single product is long enough to be shared between threads.
MANY = 1_000_000
Trains = TypeVar("Trains", bound=Callable[..., object])


def few_threads(train: Trains) -> Trains:
    """Run it on one thread where its model is small and on a CPU; OMP_NUM_THREADS, which jobs set, says otherwise."""

    @functools.wraps(train)
    def on_few(*given: object, **options: object) -> object:
        model = given[0] if given else options.get("model")
        if "OMP_NUM_THREADS" in os.environ or not _is_small(model):
            return train(*given, **options)
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return train(*given, **options)
        finally:
            torch.set_num_threads(before)

    return cast("Trains", on_few)


def _is_small(model: object) -> bool:
    if not isinstance(model, nn.Module) or any(weight.device.type != "cpu" for weight in model.parameters()):
        return False
    weights = sum(weight.numel() for weight in model.parameters())
    return weights < MANY * (len(model) if isinstance(model, Population) else 1)
