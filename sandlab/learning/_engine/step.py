"""One update of every member: gradients, optimiser, average of the weights. All of it runs on the members' device.

Nothing in an update depends on a Python number that changes from step to step, so that it can be recorded once as a
CUDA graph and replayed (recording.py): each member has a clock (updates done), and the learning rate is looked up in
the schedule's table at that clock. Members may be at different steps.
"""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.learning._engine.layout import Layout
from sandlab.learning._engine.recording import Recording
from sandlab.learning._engine.sources import Source
from sandlab.learning.objectives import Forward, Objective
from sandlab.learning.optim import RowOptimizer, clip_rows
from sandlab.models.attention import Attention
from sandlab.worlds.base import Batch

__all__ = ["ModelStep", "Step", "UpdateRule"]

Call = Callable[..., Tensor]


@dataclass(frozen=True)
class UpdateRule:
    """How weights follow their gradients.

    lr, decay   base learning rate and weight decay of each member (float64)
    table       the schedule's factor for each step
    clip        largest norm of a member's gradient
    ema         decay of the average of the weights at each step
    """

    optimizer: RowOptimizer
    lr: Tensor
    decay: Tensor
    table: Tensor
    clip: float | None = None
    ema: Tensor | None = None


class Step(ABC):
    """The members' weights, everything that changes with them, and the update that changes it.

    rows        weights, a row per member for each number type; the parameters of `model` are views of them
    gradients   rows of the same shape, overwritten by each update
    clock       updates that each member has done; limit: updates it is to do
    live        whether each member trains until its limit; weights, averages and clocks of the others do not change
    losses      (step, member): the training loss of each step; the last row takes what finished members compute
    averages    rows of the averaged weights, empty without `ema`
    recording   the update as CUDA graphs, when it runs as such
    strategy    how the members of a population are computed
    """

    strategy = ""

    def __init__(
        self, model: nn.Module, layout: Layout, rows: list[Tensor], objective: Objective, rule: UpdateRule
    ) -> None:
        self.model, self.layout, self.rows, self.objective, self.rule = model, layout, rows, objective, rule
        members, device, last = len(rows[0]), rows[0].device, len(rule.table)
        self.gradients = layout.empty(members, device)
        self.gradient_views = list(layout.views(self.gradients).values())
        self.lr, self.decay, self.table = (value.to(device) for value in (rule.lr, rule.decay, rule.table))
        self.members = torch.arange(members, device=device)
        self.clock = torch.zeros(members, dtype=torch.int64, device=device)
        self.limit = torch.full((members,), last, dtype=torch.int64, device=device)
        self.live = torch.ones(members, dtype=torch.bool, device=device)
        kind = torch.float64 if rows[0].dtype == torch.float64 else torch.float32
        self.losses = torch.full((last + 1, members), torch.nan, dtype=kind, device=device)
        self.ema = None if rule.ema is None else rule.ema.to(device)
        self.averages = [] if rule.ema is None else [row.clone() for row in rows]
        self.optimizer, self.move = rule.optimizer, rule.optimizer.step
        self.optimizer.start(rows, layout)
        self.recording: Recording | None = None
        self._compile: Callable[[Call], Call] | None = None
        self._compiled: Call | None = None
        self._fused: list[Attention] = []

    def __len__(self) -> int:
        return len(self.rows[0])

    @property
    def device(self) -> torch.device:
        return self.rows[0].device

    @property
    def on_gpu(self) -> bool:
        return self.rows[0].is_cuda

    @abstractmethod
    def compute(self, batch: Batch, number: int = 0) -> Tensor:
        """Losses (member) on a batch, and their gradients in `gradients`; `number` counts the updates before."""

    def advance(self, source: Source, start: int, count: int) -> None:
        """`count` updates on the next batches of the source; `start` is the number of the first one."""
        if self.recording is not None:
            self.recording.replay(start, count)
            return
        for number in range(start, start + count):
            self.update(source.draw(number), number)

    def update(self, batch: Batch, number: int = 0) -> None:
        """One update of every live member."""
        losses = self.compute(batch, number)
        with torch.no_grad():
            self.apply(losses)

    def moving(self) -> Tensor:
        """Which members take part in the next update."""
        return self.live & (self.clock < self.limit)

    def apply(self, losses: Tensor) -> None:
        """Note the losses and move the weights along the gradients."""
        last, live = len(self.table), self.moving()
        self.losses.index_put_((self.clock.where(live, last), self.members), losses.to(self.losses.dtype))
        if self.rule.clip is not None:
            clip_rows(self.gradients, self.rule.clip)
        # A rate of zero freezes a member exactly: w · 1 − 0 · direction.
        now = self.clock.clamp(max=last - 1)
        rate = (self.lr * self.table[now]).where(live, 0.0)
        self.move(self.rows, self.gradients, rate, self.decay, self.clock + 1)
        if self.ema is not None:
            weight = (1 - self.ema[now]).where(live, 0.0).unsqueeze(1)
            for average, row in zip(self.averages, self.rows):
                average.lerp_(row, weight.to(row.dtype))
        self.clock += live

    @property
    def recordable(self) -> bool:
        """Whether nothing in an update depends on Python numbers that change, or waits for the host."""
        return self.optimizer.on_device and self.objective.steady

    def record(self, source: Source) -> None:
        """Run updates as CUDA graphs from now on, on a GPU and where every part of them allows it."""
        if not (self.on_gpu and self.recordable):
            return
        try:
            self.recording = Recording(self, source)
        except RuntimeError as failure:
            warnings.warn(f"the step cannot be recorded as a CUDA graph ({failure}): it runs from Python", stacklevel=2)
            torch.cuda.synchronize()

    def compile(self, mode: str | None = None) -> None:
        """Let torch's compiler fuse the members' passes and the optimiser's step; `mode` as for `torch.compile`."""
        self.recording, self._compiled = None, None
        self._compile = functools.partial(torch.compile, dynamic=False, mode=mode)
        if self.optimizer.on_device and self.move == self.optimizer.step:
            self.move = torch.compile(self.optimizer.step, dynamic=False)

    def compiled(self, call: Call) -> Call:
        """The forward pass of the members, or what the compiler made of it when it was first called."""
        if self._compile is None:
            return call
        if self._compiled is None:  # not `or`: what the compiler returns may have no truth value
            self._compiled = self._compile(call)
        return self._compiled

    def choose_strategy(self, source: Source) -> None:  # noqa: B027
        """Settle how members are computed; nothing is trained."""

    def fuse_attention(self) -> None:
        """Use torch's fused attention kernel in the layers that offer it, until `close`."""
        for part in self.computed_module().modules():
            if isinstance(part, Attention) and not part.fused:
                part.fused = True
                self._fused.append(part)

    def computed_module(self) -> nn.Module:
        """The module whose layers compute the members."""
        return self.model

    def keep_gradients(self, gradients: tuple[Tensor | None, ...], views: list[Tensor]) -> None:
        """Copy gradients into views of `gradients`; a weight that the loss does not depend on has none."""
        found = [torch.zeros_like(view) if each is None else each for view, each in zip(views, gradients)]
        torch._foreach_copy_(views, found)

    def swap_averages(self) -> None:
        """Exchange the weights and their averages; a second call restores them."""
        with torch.no_grad():
            for average, row in zip(self.averages, self.rows):
                kept = row.clone()
                row.copy_(average)
                average.copy_(kept)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that an update changes, except the losses: what a recording restores and a checkpoint holds."""
        found = {f"row.{index}": row for index, row in enumerate(self.rows)}
        found |= {f"average.{index}": row for index, row in enumerate(self.averages)}
        found |= {f"optimizer.{name}": value for name, value in self.optimizer.tensors().items()}
        return found | {"clock": self.clock, "live": self.live}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Take over the tensors of a checkpoint."""
        self.optimizer.load({name.removeprefix("optimizer."): saved[name] for name in saved if "optimizer." in name})
        for name, value in self.tensors().items():
            given, own = tuple(saved[name].shape), tuple(value.shape)
            if given != own:
                raise BadInput(f"the checkpoint holds weights of shape {given}, the model's are {own}")
            value.copy_(saved[name])

    def close(self) -> None:
        """Leave the model as it was found, with its trained weights."""
        for attention in self._fused:
            attention.fused = False


class ModelStep(Step):
    """The update of one model; while it trains, its parameters are views of a single row."""

    def __init__(self, model: nn.Module, objective: Objective, rule: UpdateRule) -> None:
        named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        layout = Layout(named)
        self.parameters = list(named.values())
        rows = layout.empty(1, self.parameters[0].device)
        layout.fill(rows, 0, named)
        super().__init__(model, layout, rows, objective, rule)
        self.storages = [weight.data for weight in self.parameters]
        self.own_gradients = [view[0] for view in self.gradient_views]
        for weight, view in zip(self.parameters, layout.views(rows).values()):
            weight.data = view[0]

    def compute(self, batch: Batch, number: int = 0) -> Tensor:
        loss = self.objective.whole(Forward(self.compiled(self.model), self.model, number), batch)
        self.keep_gradients(torch.autograd.grad(loss, self.parameters, allow_unused=True), self.own_gradients)
        return loss.detach().reshape(1)

    def close(self) -> None:
        super().close()
        with torch.no_grad():
            for weight, storage in zip(self.parameters, self.storages):
                storage.copy_(weight.data)
                weight.data = storage
