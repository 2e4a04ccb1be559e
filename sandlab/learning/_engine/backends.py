"""What the training loop trains: one model, or a population computed in the fastest of three ways.

Both give losses (one per member) and gradients as rows (member, weight); the loop knows nothing else of them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.learning._engine.layout import Layout
from sandlab.learning.objectives import Forward, MemberBatch, Objective, member_losses
from sandlab.learning.population import Population
from sandlab.worlds.base import Batch

__all__ = ["GradientBackend", "SingleModel", "StackedModels", "chosen_strategies"]


class GradientBackend:
    """Weights in rows and a function that computes losses and gradients for a batch."""

    model: Any
    layout: Layout
    rows: list[Tensor]
    gradients: list[Tensor]
    step = 0
    compiled = False
    mode: str | None = None
    one_by_one = False

    def __init__(self) -> None:
        self._calls: dict[int, Callable[..., Tensor]] = {}
        self._fused: list[tuple[Any, bool]] = []
        self.resting: set[int] = set()  # members that need not be computed
        self.gradients = self.layout.empty(len(self), self.rows[0].device)
        self._gradient_views = list(self.layout.views(self.gradients).values())

    def __len__(self) -> int:
        return self.rows[0].shape[0]

    @property
    def on_gpu(self) -> bool:
        return self.rows[0].is_cuda

    def compute(self, batch: Batch, objective: Objective) -> tuple[Tensor, list[Tensor]]:
        """Losses (member) and gradient rows; the rows are overwritten by the next call."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave the model as a model of its own again."""
        for attention, before in self._fused:
            attention.fused = before

    def compile(self, mode: str | None = None) -> None:
        """Let torch's compiler fuse the members' forward and backward pass, from the next call on."""
        self.compiled, self.mode = True, mode
        self._calls.clear()

    def fuse_attention(self) -> None:
        """Use torch's fused attention kernel in the layers that offer it, until `close`."""
        for module in self._fusible():
            for part in module.modules():
                attention: Any = part
                if hasattr(attention, "fused"):
                    self._fused.append((attention, attention.fused))
                    attention.fused = True

    def _fusible(self) -> list[nn.Module]:
        return [self.model]

    def _call(self, module: Any) -> Callable[..., Tensor]:
        """The module, or what the compiler makes of it."""
        if not self.compiled:
            return module
        key = id(getattr(module, "__self__", module))
        if key not in self._calls:
            self._calls[key] = torch.compile(module, dynamic=False, mode=self.mode)
        return self._calls[key]

    def _keep(self, gradients: tuple[Tensor | None, ...], views: list[Tensor]) -> None:
        present = [(view, gradient) for view, gradient in zip(views, gradients) if gradient is not None]
        torch._foreach_copy_([view for view, _ in present], [gradient for _, gradient in present])
        for view, gradient in zip(views, gradients):
            if gradient is None:  # a weight that the loss does not depend on
                view.zero_()


class SingleModel(GradientBackend):
    """One model; while it trains, its parameters are views of a single row."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.layout = Layout({name: weight.detach() for name, weight in named.items()})
        self.rows = self.layout.empty(1, next(iter(named.values())).device)
        self.parameters = list(named.values())
        self.layout.fill(self.rows, 0, {name: weight.detach() for name, weight in named.items()})
        self.storages = [weight.data for weight in self.parameters]
        for weight, view in zip(self.parameters, self.layout.views(self.rows).values()):
            weight.data = view[0]
        super().__init__()
        self._own_views = [view[0] for view in self._gradient_views]

    def compute(self, batch: Batch, objective: Objective) -> tuple[Tensor, list[Tensor]]:
        loss = member_losses(objective, Forward(self._call(self.model), self.model, self.step), batch)
        self._keep(torch.autograd.grad(loss, self.parameters, allow_unused=True), self._own_views)
        return loss.detach().reshape(1), self.gradients

    def close(self) -> None:
        super().close()
        with torch.no_grad():
            for weight, storage in zip(self.parameters, self.storages):
                storage.copy_(weight.data)
                weight.data = storage


class StackedModels(GradientBackend):
    """A population, computed natively, by `vmap`, or one member after another; all agree up to rounding."""

    def __init__(self, population: Population) -> None:
        self.model = population
        self.layout = population.layout
        self.rows = [row.data for row in population.rows]
        super().__init__()
        self.leaves = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.rows).items()}
        self.strategy = population.strategy
        self.joint: nn.Module | None = None
        self.modules: list[nn.Module] = []

    def compute(self, batch: Batch, objective: Objective) -> tuple[Tensor, list[Tensor]]:
        if self.strategy == "sequential":
            return self._in_turn(batch, objective, len(self)), self.gradients
        losses = self._native(batch, objective) if self.strategy == "native" else self._vmapped(batch, objective)
        if losses.shape != (len(self),):
            given = tuple(losses.shape)
            raise BadInput(f"the objective must give one loss per member ({len(self)}), got shape {given}")
        weights = self.weights if self.strategy == "native" else list(self.leaves.values())
        self._keep(torch.autograd.grad(losses.sum(), weights, allow_unused=True), self._gradient_views)
        return losses.detach(), self.gradients

    def _native(self, batch: Batch, objective: Objective) -> Tensor:
        joint, own = self._joint(), isinstance(batch, MemberBatch)
        run = self._call(joint)

        def call(inputs: Tensor) -> Tensor:
            return run(inputs if own else inputs.unsqueeze(0).expand(len(self), *inputs.shape))

        return member_losses(objective, Forward(call, joint, self.step), batch)

    def _joint(self) -> nn.Module:
        """A copy of the template whose parameters are the stacked ones: its layers carry the members."""
        if self.joint is None:
            self.joint = copy.deepcopy(self.model.template)
            named = dict(self.joint.named_parameters())
            for name, leaf in self.leaves.items():
                named[name].data = leaf.data
            self.weights = [named[name] for name in self.leaves]
        return self.joint

    def _fusible(self) -> list[nn.Module]:
        return [self._joint()] if self.strategy == "native" else []

    def _vmapped(self, batch: Batch, objective: Objective) -> Tensor:
        own = isinstance(batch, MemberBatch)

        run = self._call(self.model.vmapped)

        def call(inputs: Tensor) -> Tensor:
            return run(self.leaves, inputs, per_member=own)

        return member_losses(objective, Forward(call, self.model, self.step), batch)

    def _in_turn(self, batch: Batch, objective: Objective, members: int) -> Tensor:
        if not self.modules:
            self._make_modules()
        losses = torch.full((members,), torch.nan, dtype=_real_type(self.rows[0].dtype), device=self.rows[0].device)
        for place, module in enumerate(self.modules[:members]):
            if place in self.resting:
                continue
            part = _member_batch(batch, place) if isinstance(batch, MemberBatch) else batch
            loss = member_losses(objective, Forward(module, module, self.step), part)
            gradients = torch.autograd.grad(loss, self.module_weights[place], allow_unused=True)
            self._keep(gradients, self.member_gradients[place])
            losses[place] = loss.detach()
        return losses

    def _make_modules(self) -> None:
        """One module per member whose parameters are views of its row: no copying between them and the rows."""
        views = self.layout.views(self.rows)
        self.module_weights: list[list[nn.Parameter]] = []
        self.member_gradients = [[view[place] for view in self._gradient_views] for place in range(len(self))]
        for place in range(len(self)):
            module = copy.deepcopy(self.model.template)
            named = dict(module.named_parameters())
            for name, view in views.items():
                named[name].data = view[place]
            fixed = {**named, **dict(module.named_buffers())}
            for name, value in self.model.constants.items():
                fixed[name].data = value[place]
            self.modules.append(module)
            self.module_weights.append([named[name] for name in views])

    @property
    def one_by_one(self) -> bool:  # type: ignore[override]
        return self.strategy == "sequential"

    def choose(self, batch: Batch, objective: Objective) -> str:
        """Settle how members are computed: as the population says, or the fastest on this batch. Trains nothing."""
        carries = self.model.carries_members
        if self.model.strategy == "native" and not carries:
            kind = type(self.model.template).__name__
            raise BadInput(f"{kind} does not carry a member axis: use strategy='vmap' or 'auto'")
        together = "native" if carries else "vmap"
        if self.model.strategy != "auto":
            self.strategy = self.model.strategy
        elif self.on_gpu or self.model.hooked:
            self.strategy = together
        else:
            self.strategy = self._fastest(together, batch, objective)
        return self.strategy

    def _fastest(self, together: str, batch: Batch, objective: Objective) -> str:
        template, shape = self.model.template, tuple(batch.inputs.shape)
        key = (type(template), repr(getattr(template, "config", "")), len(self), shape, torch.get_num_threads())
        if key not in _measured:
            few = min(len(self), 4)
            self.strategy = together
            in_turn, jointly = _race(
                lambda: self._in_turn(batch, objective, few), lambda: self.compute(batch, objective), len(self) / few
            )
            _measured[key] = "sequential" if in_turn <= jointly else together
        return _measured[key]


_measured: dict[Any, str] = {}


def chosen_strategies() -> list[str]:
    """How populations were computed in this process, in the order in which it was measured."""
    return list(_measured.values())


def _race(first: Callable[[], Any], second: Callable[[], Any], weight: float) -> tuple[float, float]:
    """Shortest times of two computations that take turns, `weight` times the first's; one that fails takes for ever.

    On one thread CPU time is counted, so that other work on the machine does not decide.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    state = torch.get_rng_state()
    best = [float("inf"), float("inf")]
    begun = time.perf_counter()
    for attempt in range(9):
        for place, compute in enumerate((first, second)):
            start = clock()
            try:
                compute()
            except (RuntimeError, NotImplementedError):
                if place == 0:
                    raise
                return 0.0, float("inf")  # vmap cannot batch every operation; one after another always works
            if attempt:
                best[place] = min(best[place], clock() - start)
        if attempt >= 2 and time.perf_counter() - begun > 0.5:
            break
    torch.set_rng_state(state)
    return weight * best[0], best[1]


def _real_type(kind: torch.dtype) -> torch.dtype:
    return torch.float64 if kind in (torch.float64, torch.complex128) else torch.float32


def _member_batch(batch: MemberBatch, place: int) -> Batch:
    truth = {name: value[place] for name, value in batch.truth.items()}
    return Batch(batch.inputs[place], batch.targets[place], batch.mask[place], truth)
