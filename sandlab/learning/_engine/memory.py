"""How many members fit into the memory of a device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning._engine.step import UpdateRule
from sandlab.learning.objectives import Objective
from sandlab.learning.optim import SGD
from sandlab.learning.population import Population
from sandlab.worlds.base import Batch

__all__ = ["available_bytes", "bytes_per_member", "fitting_members"]

# Weights, gradients, two moments, an average: rows of the same size. Backward passes hold about as much as was saved.
_ROWS, _BACKWARD = 5, 2.0


def bytes_per_member(factory: Callable[[int], nn.Module], batch: Batch, objective: Objective) -> int:
    """Memory that one more member needs for a training step: its rows of weights, and what the backward pass keeps.

    Counted, not guessed: the tensors that autograd saves during one forward pass of two members, each storage once.
    """
    population = Population(factory, seeds=[0, 1]).to(batch.inputs.device)
    still = torch.zeros(2, dtype=torch.float64)
    step = PopulationStep(population, objective, UpdateRule(SGD(), still, still, torch.ones(1)))
    step.strategy = "native" if population.carries_members else "vmap"
    saved: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        step.compute(batch)
    rows = sum(row.nbytes for row in step.rows) // 2
    return int(_ROWS * rows + _BACKWARD * sum(saved.values()) / 2)


def available_bytes(device: torch.device) -> int:
    """Memory that is free on the device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + reserved
    with open("/proc/meminfo") as file:
        facts = dict(line.split(":") for line in file)
    return int(facts["MemAvailable"].split()[0]) * 1024


def fitting_members(
    factory: Callable[[int], nn.Module], batch: Batch, objective: Objective, *, share: float = 0.7, most: int = 1024
) -> int:
    """As many members as fit into `share` of the free memory, at least one and at most `most`."""
    each = max(1, bytes_per_member(factory, batch, objective))
    return max(1, min(most, int(share * available_bytes(batch.inputs.device) / each)))
