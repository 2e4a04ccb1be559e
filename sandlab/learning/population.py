"""Many members of one architecture, trained and evaluated at once; the member axis is first."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sandlab.errors import BadInput, choice, require
from sandlab.learning._engine.layout import Layout
from sandlab.models.base import Model, seeded
from sandlab.models.hooks import VmapRecording

__all__ = ["STRATEGIES", "Population", "build_member", "per_member", "scale_weights"]

STRATEGIES = ("native", "vmap", "sequential")
Member = TypeVar("Member", bound=nn.Module)
Template = TypeVar("Template", bound=nn.Module, covariant=True)


def per_member(field: str, value: float | Sequence[float] | Tensor, members: int) -> Tensor:
    """One number for all members, or one each, as a float64 vector over members."""
    values = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    require(values.ndim <= 1, field, tuple(values.shape), "a number or one per member")
    fits = values.ndim == 0 or len(values) == members
    require(fits, field, f"{values.numel()} values", f"a number or one for each of the {members} members")
    require(bool(torch.isfinite(values).all()), field, value, "finite")
    return values.expand(members).clone()


def scale_weights(model: nn.Module, scale: float) -> None:
    """Multiply every weight matrix and table by `scale`; biases and gains (one axis) stay as they are."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim >= 2:
                weight.mul_(scale)


class Population(VmapRecording, nn.Module, Generic[Template]):
    """`factory(seed)` once per seed, with the weights of all members in one tensor (member, weight).

    factory     a function from the seed to a module. It is called with torch's generator seeded, so that a factory
                which ignores its argument still gives every seed its own weights: those of
                `with sl.models.seeded(seed): factory(seed)`
    seeds       one per member
    init_scale  factor of the initial weight matrices (see `scale_weights`): a number, or one per member
    strategy    how members are computed together: "native" (the layers carry the member axis), "vmap" (any module),
                "sequential" (one after another), or "auto": `train` measures and takes the fastest

    Calling a population on inputs shared by all members gives logits with the member axis first; with
    `per_member=True` the inputs have a member axis themselves. `record` and `patch` work on it as on one model.
    `template` is a module of the members' architecture: it computes with the members' weights, its own are not used.
    """

    template: Template

    def __init__(
        self,
        factory: Callable[[int], Template],
        *,
        seeds: Iterable[int],
        init_scale: float | Sequence[float] | Tensor = 1.0,
        strategy: str = "auto",
    ) -> None:
        super().__init__()
        self.seeds = [int(seed) for seed in seeds]
        require(len(self.seeds) >= 1, "seeds", self.seeds, "at least one number")
        choice("strategy", strategy, ("auto", *STRATEGIES))
        self.strategy, self.factory = strategy, factory
        scales = per_member("init_scale", init_scale, len(self.seeds)).tolist()
        template = build_member(factory, self.seeds[0], scales[0])
        self.__dict__["template"] = template  # not a submodule: its weights are not the population's
        self.layout = Layout(_trainable(template))
        device = next(template.parameters()).device
        self.rows = nn.ParameterList(nn.Parameter(row) for row in self.layout.empty(len(self.seeds), device))
        self.constants: dict[str, Tensor] = {}
        others = [_fixed(template)]
        self.layout.fill(list(self.rows), 0, _trainable(template))
        for index in range(1, len(self.seeds)):
            member = build_member(factory, self.seeds[index], scales[index])
            self.layout.fill(list(self.rows), index, _trainable(member))
            others.append(_fixed(member))
        self._keep_constants(others)

    def _keep_constants(self, others: list[dict[str, Tensor]]) -> None:
        """Buffers and frozen weights: once when all members agree, stacked when they differ."""
        shared = {name for name, first in others[0].items() if all(_same(first, other[name]) for other in others)}
        stacked = {name: torch.stack([other[name] for other in others]) for name in others[0] if name not in shared}
        self.constants = stacked

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def native(self) -> bool:
        """Whether the template computes all members itself, so that hooks on it see ordinary tensors."""
        return self.strategy in ("auto", "native") and self.carries_members

    @property
    def carries_members(self) -> bool:
        """Whether the layers work with stacked weights, and nothing else differs between members."""
        return isinstance(self.template, Model) and self.template.carries_members and not self.constants

    @property
    def hooked(self) -> bool:
        """Whether an activation is being recorded or patched."""
        return any(module._forward_hooks for module in self.template.modules())

    @property
    def stacked(self) -> dict[str, Tensor]:
        """The named weights, member axis first: views of the population's rows, part of the autograd graph."""
        return self.layout.views(list(self.rows))

    @property
    def device(self) -> torch.device:
        return self.rows[0].device

    def forward(self, inputs: Tensor, *, per_member: bool = False) -> Tensor:
        if per_member and inputs.shape[0] != len(self):
            raise BadInput(f"inputs must have {len(self)} members in front, got a leading axis of {inputs.shape[0]}")
        return self.compute(self.stacked, inputs, per_member=per_member)

    def compute(self, weights: dict[str, Tensor], inputs: Tensor, *, per_member: bool = False) -> Tensor:
        """The members' outputs for the given stacked weights."""
        if self.native:
            members = next(iter(weights.values())).shape[0]
            inputs = inputs if per_member else inputs.unsqueeze(0).expand(members, *inputs.shape)
            return functional_call(self.template, weights, (inputs,))
        if self.strategy == "sequential" and not self.hooked:
            return self._one_by_one(weights, inputs, per_member=per_member)
        try:
            return self.vmapped(weights, inputs, per_member=per_member)
        except RuntimeError:
            if self.strategy == "vmap" or self.hooked:
                raise
            return self._one_by_one(weights, inputs, per_member=per_member)  # vmap cannot batch every operation

    def vmapped(self, weights: dict[str, Tensor], inputs: Tensor, *, per_member: bool = False) -> Tensor:
        """The members' outputs through `vmap`, for modules that know nothing of members."""
        state = {**weights, **self.constants}
        return self.run_members(state, inputs, input_dim=0 if per_member else None, randomness="different")

    def _one_by_one(self, weights: dict[str, Tensor], inputs: Tensor, *, per_member: bool) -> Tensor:
        """The members' outputs one after another."""
        parts = {name: value.unbind(0) for name, value in {**weights, **self.constants}.items()}
        members = range(len(next(iter(parts.values()))))
        outputs = [
            functional_call(
                self.template,
                {name: part[index] for name, part in parts.items()},
                (inputs[index] if per_member else inputs,),
            )
            for index in members
        ]
        return torch.stack(outputs)

    def state(self) -> dict[str, Tensor]:
        """The members' state dicts, stacked: trained and frozen weights, and the buffers that are saved."""
        template, given = self.template, {**self.stacked, **self.constants}
        names = {id(value): name for name, value in (*template.named_parameters(), *template.named_buffers())}
        found = {}
        for name, value in template.state_dict(keep_vars=True).items():  # tied weights occur under two names
            each = given.get(names[id(value)], value.expand(len(self), *value.shape))
            found[name] = each.detach().clone()
        return found

    def member(self, index: int) -> Template:
        """A copy of one member as a plain model."""
        if not -len(self) <= index < len(self):
            raise BadInput(f"there is no member {index}: the population has {len(self)}")
        model = copy.deepcopy(self.template)
        with torch.no_grad():
            named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
            for name, value in {**self.stacked, **self.constants}.items():
                named[name].copy_(value[index])
        return model

    def members(self) -> Iterator[Template]:
        """Every member as a plain model."""
        return (self.member(index) for index in range(len(self)))

    def set_member(self, index: int, model: nn.Module) -> None:
        """Give one member the weights of a plain model of the same architecture."""
        self.layout.fill(list(self.rows), index, _trainable(model))
        fixed = _fixed(model)
        for name, value in self.constants.items():
            value[index].copy_(fixed[name])

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if "template" in self.__dict__:
            self.template.train(mode)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.template._apply(fn)
        self.constants = {name: fn(value) for name, value in self.constants.items()}
        self.layout.dtypes = [row.dtype for row in self.rows]
        return self

    def __repr__(self) -> str:
        return f"Population({len(self)} × {type(self.template).__name__}, strategy={self.strategy!r})"


def build_member(factory: Callable[[int], Member], seed: int, scale: float) -> Member:
    """`factory(seed)` with torch's generator seeded, its weight matrices multiplied by `scale`."""
    with seeded(seed):
        model = factory(seed)
    if not isinstance(model, nn.Module):
        raise BadInput(f"the factory must return a torch module, got {type(model).__name__}")
    if scale != 1.0:
        scale_weights(model, scale)
    return model


def _trainable(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def _fixed(model: nn.Module) -> dict[str, Tensor]:
    frozen = {name: weight.detach() for name, weight in model.named_parameters() if not weight.requires_grad}
    return {**frozen, **{name: buffer.detach() for name, buffer in model.named_buffers()}}


def _same(first: Tensor, other: Tensor) -> bool:
    return first.shape == other.shape and torch.equal(first, other)
