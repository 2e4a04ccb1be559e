"""The update of a population, computed in one of three ways; all agree up to rounding.

native       the layers of one module carry the members' stacked weights
vmap         `torch.vmap` of a module that knows nothing of members
sequential   one member after another
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import ModelStep, Step, UpdateRule
from sandlab.learning.objectives import Forward, MemberBatch, Objective
from sandlab.learning.population import Population
from sandlab.worlds.base import Batch

__all__ = ["LARGE", "PopulationStep", "make_step"]

# Weights of one member from which on, on a CPU, members are computed one after another.
LARGE = 20_000


def make_step(model: nn.Module, objective: Objective, rule: UpdateRule) -> Step:
    """The update of one model or of a population."""
    if isinstance(model, Population):
        return PopulationStep(model, objective, rule)
    return ModelStep(model, objective, rule)


class PopulationStep(Step):
    """The update of all members of a population."""

    def __init__(self, population: Population[nn.Module], objective: Objective, rule: UpdateRule) -> None:
        super().__init__(population, population.layout, [row.data for row in population.rows], objective, rule)
        self.population = population
        self.leaves = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.rows).items()}
        self.strategy = population.strategy
        self._joint: nn.Module | None = None
        self._weights: list[Tensor] = list(self.leaves.values())
        self._modules: list[tuple[nn.Module, list[nn.Parameter], list[Tensor]]] = []

    @property
    def recordable(self) -> bool:
        return super().recordable and self.strategy != "sequential"

    def compute(self, batch: Batch, number: int = 0) -> Tensor:
        if self.strategy == "sequential":
            return self._in_turn(batch, number, len(self))
        forward = self._native(batch, number) if self.strategy == "native" else self._vmapped(batch, number)
        losses = self.objective.whole(forward, batch)
        if losses.shape != (len(self),):
            given = tuple(losses.shape)
            raise BadInput(f"the objective must give one loss per member ({len(self)}), got shape {given}")
        weights = self._weights if self.strategy == "native" else list(self.leaves.values())
        self.keep_gradients(torch.autograd.grad(losses.sum(), weights, allow_unused=True), self.gradient_views)
        return losses.detach()

    def _native(self, batch: Batch, number: int) -> Forward:
        joint, separate = self.computed_module(), isinstance(batch, MemberBatch)
        run = self.compiled(joint)

        def call(inputs: Tensor) -> Tensor:
            return run(inputs if separate else inputs.unsqueeze(0).expand(len(self), *inputs.shape))

        return Forward(call, joint, number)

    def computed_module(self) -> nn.Module:
        """A copy of the template whose parameters are the stacked ones: its layers carry the members."""
        if self._joint is None:
            self._joint = copy.deepcopy(self.population.template)
            named = dict(self._joint.named_parameters())
            for name, leaf in self.leaves.items():
                named[name].data = leaf.data
            self._weights = [named[name] for name in self.leaves]
        return self._joint

    def fuse_attention(self) -> None:
        if self.strategy == "native":
            super().fuse_attention()

    def _vmapped(self, batch: Batch, number: int) -> Forward:
        separate = isinstance(batch, MemberBatch)
        run = self.compiled(self.population.vmapped)
        return Forward(lambda inputs: run(self.leaves, inputs, per_member=separate), self.population, number)

    def _in_turn(self, batch: Batch, number: int, members: int) -> Tensor:
        """Losses and gradients of the first members that still train, one after another."""
        if not self._modules:
            named = self.layout.views(self.rows)
            self._modules = [self._module(index, named) for index in range(len(self))]
        kind = torch.float64 if self.rows[0].dtype in (torch.float64, torch.complex128) else torch.float32
        losses = torch.full((members,), torch.nan, dtype=kind, device=self.device)
        for index, trains in enumerate(self.moving()[:members].tolist()):
            if not trains:
                continue
            module, weights, views = self._modules[index]
            part = batch.member(index) if isinstance(batch, MemberBatch) else batch
            loss = self.objective.whole(Forward(module, module, number), part)
            self.keep_gradients(torch.autograd.grad(loss, weights, allow_unused=True), views)
            losses[index] = loss.detach()
        return losses

    def _module(self, index: int, views: dict[str, Tensor]) -> tuple[nn.Module, list[nn.Parameter], list[Tensor]]:
        """A module whose parameters are views of one member's row (nothing is copied), they, and their gradients."""
        module = copy.deepcopy(self.population.template)
        named = dict(module.named_parameters())
        for name, view in views.items():
            named[name].data = view[index]
        fixed: dict[str, Tensor] = {**named, **dict(module.named_buffers())}
        for name, value in self.population.constants.items():
            fixed[name].data = value[index]
        return module, [named[name] for name in views], [view[index] for view in self.gradient_views]

    def choose_strategy(self, source: Source) -> None:
        """As the population says; "auto" is a fixed function of the model, its size and the device.

        On a CPU small members are computed together, where what counts is the number of calls, and large ones one after
        another, where it is the number of multiplications.
        """
        population = self.population
        together = "native" if population.carries_members else "vmap"
        if population.strategy == "native" != together:
            kind = type(population.template).__name__
            raise BadInput(f"{kind} does not carry a member axis: use strategy='vmap' or 'auto'")
        if population.strategy != "auto":
            self.strategy = population.strategy
        elif self.on_gpu or population.hooked:
            self.strategy = together
        elif len(self) == 1 or sum(self.layout.widths) > LARGE:
            self.strategy = "sequential"
        else:
            self.strategy = together if together == "native" or self._vmap_works(source.peek(0)) else "sequential"

    def _vmap_works(self, batch: Batch) -> bool:
        """Whether `vmap` can batch every operation of the module; one after another always works."""
        state = torch.get_rng_state()
        self.strategy = "vmap"
        try:
            self.compute(batch)
        except (RuntimeError, NotImplementedError):
            return False
        finally:
            torch.set_rng_state(state)
        return True

    def replace_member(self, index: int, model: nn.Module, lr: float, decay: float, limit: int) -> None:
        """Replace a member by another model, with a fresh optimiser and its clock at zero."""
        with torch.no_grad():
            self.population.set_member(index, model)
            for value in self.optimizer.tensors().values():
                value[index].zero_()
            self.lr[index], self.decay[index], self.limit[index] = lr, decay, limit
            self.clock[index], self.live[index] = 0, True
            self.losses[:, index] = torch.nan

    def rest(self, index: int) -> None:
        """Nothing trains at this index for now."""
        self.clock[index], self.live[index] = 0, False
