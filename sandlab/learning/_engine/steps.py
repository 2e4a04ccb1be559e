"""One update of every member as operations on the device only, so that it can be recorded once and replayed.

Nothing here depends on a Python number that changes from step to step: each member has a clock (updates done), and the
learning rate is a look-up in the schedule's table at that clock. Members may thus stand at different steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sandlab.learning._engine.backends import GradientBackend
from sandlab.learning.objectives import Objective
from sandlab.learning.optim import SGD, Adam, Normalised, TorchOptimizer, clip_rows
from sandlab.worlds.base import Batch

__all__ = ["TrainState"]


@dataclass
class TrainState:
    """What changes while members train, all of it on their device.

    lr, decay   base learning rate and weight decay of each member (float64)
    table       the schedule's factor for each step
    clock       updates each member has done
    limit       updates each member shall do
    live        whether each member trains until its limit; the others' weights, averages and clocks stand still
    losses      (step, member): the training loss of each step; the last row takes what finished members compute
    ema         decay of the average of the weights at each step
    """

    backend: GradientBackend
    objective: Objective
    optimizer: Adam | SGD | Normalised | TorchOptimizer
    lr: Tensor
    decay: Tensor
    table: Tensor
    clip: float | None = None
    ema: Tensor | None = None
    clock: Tensor = field(init=False)
    limit: Tensor = field(init=False)
    live: Tensor = field(init=False)
    losses: Tensor = field(init=False)
    averages: list[Tensor] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        members, first = len(self.backend), self.backend.rows[0]
        device = first.device
        self.lr, self.decay, self.table = (value.to(device) for value in (self.lr, self.decay, self.table))
        self.places = torch.arange(members, device=device)
        self.clock = torch.zeros(members, dtype=torch.int64, device=device)
        self.limit = torch.full((members,), len(self.table), dtype=torch.int64, device=device)
        self.live = torch.ones(members, dtype=torch.bool, device=device)
        kind = torch.float64 if first.dtype == torch.float64 else torch.float32
        self.losses = torch.full((len(self.table) + 1, members), torch.nan, dtype=kind, device=device)
        if self.ema is not None:
            self.ema = self.ema.to(device)
            self.averages = [row.clone() for row in self.backend.rows]
        self.optimizer.start(self.backend.rows, self.backend.layout)

    def update(self, batch: Batch) -> None:
        """One step of every live member on this batch."""
        if self.backend.one_by_one:
            self.backend.resting = set((~self.moving()).nonzero().flatten().tolist())
        losses, gradients = self.backend.compute(batch, self.objective)
        with torch.no_grad():
            self.apply(losses, gradients)

    def moving(self) -> Tensor:
        """Which members take part in the next step."""
        return self.live & (self.clock < self.limit)

    def apply(self, losses: Tensor, gradients: list[Tensor]) -> None:
        """Note the losses and move the weights along the gradients."""
        last, live = len(self.table), self.moving()
        self.losses.index_put_((self.clock.where(live, last), self.places), losses.to(self.losses.dtype))
        if self.clip is not None:
            clip_rows(gradients, self.clip)
        # A rate of zero freezes a member exactly: w · 1 − 0 · direction.
        now = self.clock.clamp(max=last - 1)
        rate = (self.lr * self.table[now]).where(live, 0.0)
        self.optimizer.step(self.backend.rows, gradients, rate, self.decay, self.clock + 1)
        if self.ema is not None:
            weight = (1 - self.ema[now]).where(live, 0.0).unsqueeze(1)
            for average, row in zip(self.averages, self.backend.rows):
                average.lerp_(row, weight.to(row.dtype))
        self.clock += live

    def compile(self, mode: str | None = None) -> None:
        """Let torch's compiler fuse the members' passes and the optimiser's step; `mode` as for `torch.compile`."""
        self.backend.compile(mode)
        if not isinstance(self.optimizer, TorchOptimizer) and "step" not in vars(self.optimizer):
            self.optimizer.step = torch.compile(self.optimizer.step, dynamic=False)  # type: ignore[method-assign]

    def swap_averages(self) -> None:
        """Exchange the weights and their averages; a second call restores them."""
        with torch.no_grad():
            for average, row in zip(self.averages, self.backend.rows):
                kept = row.clone()
                row.copy_(average)
                average.copy_(kept)
