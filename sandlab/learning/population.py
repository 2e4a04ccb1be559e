"""Many members of one architecture, trained and evaluated at once; the member axis is first."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sandlab._door import guarded
from sandlab.errors import BadInput, choice, integer, require, shown
from sandlab.learning._engine.layout import Layout
from sandlab.models.base import Model, seeded
from sandlab.models.hooks import VmapRecording
from sandlab.worlds.base import World

__all__ = ["STRATEGIES", "Population", "build_member", "per_member", "scale_weights"]

STRATEGIES = ("native", "vmap", "sequential")
ModuleType = TypeVar("ModuleType", bound=nn.Module)
Template = TypeVar("Template", bound=nn.Module, covariant=True)
P = ParamSpec("P")
One = TypeVar("One", covariant=True)
Many = TypeVar("Many", covariant=True)


def per_member(field: str, value: float | Sequence[float] | Tensor, members: int, low: float | None = None) -> Tensor:
    """One number of at least `low` for all members, or one each, as a float64 vector over members."""
    try:
        values = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise BadInput(f"{field} must be a number or one for each member, got {shown(value)}") from None
    fits = values.ndim == 0 or values.shape == (members,)
    require(fits, field, f"{values.numel()} values", f"a number or one for each of the {members} members")
    require(bool(torch.isfinite(values).all()), field, value, "finite")
    require(low is None or bool((values >= (low or 0.0)).all()), field, value, f"at least {low}")
    return values.expand(members).clone()


def scale_weights(model: nn.Module, scale: float) -> None:
    """Multiply every weight matrix and table by `scale`; biases and gains (one axis) stay as they are."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim >= 2:
                weight.mul_(scale)


@guarded
class Population(VmapRecording, nn.Module, Generic[Template]):
    """`factory(seed)` once per seed, with the weights of all members in one tensor (member, weight).

    factory     a function from the seed to a module. It is called with torch's generator seeded, so that a factory
                which ignores its argument still gives every seed its own weights: those of
                `with sl.models.seeded(seed): factory(seed)`
    seeds       one per member
    init_scale  factor of the initial weight matrices (see `scale_weights`): a number, or one per member
    strategy    how members are computed together: "native" (the layers carry the member axis), "vmap" (any module),
                "sequential" (one after another), or "auto": a fixed function of model, size and device, so that
                the same run gives the same digits everywhere

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
        if not callable(factory):
            raise BadInput(f"factory must be a function from a seed to a module, got {shown(factory)}")
        if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable) or getattr(seeds, "ndim", 1) == 0:
            raise BadInput(f"seeds must be a list of whole numbers, got {shown(seeds)}")
        self.seeds = [_seed(seed) for seed in seeds]
        require(len(self.seeds) >= 1, "seeds", self.seeds, "at least one number")
        choice("strategy", strategy, ("auto", *STRATEGIES))
        self.strategy, self.factory = strategy, factory
        scales = per_member("init_scale", init_scale, len(self.seeds)).tolist()
        template = build_member(factory, self.seeds[0], scales[0])
        self.__dict__["template"] = template  # not a submodule: its weights are not the population's
        self.layout = Layout(_trainable(template))
        device = next(template.parameters()).device
        self.rows = nn.ParameterList(nn.Parameter(row) for row in self.layout.empty(len(self.seeds), device))
        fixed: list[dict[str, Tensor]] = []
        for index, (seed, scale) in enumerate(zip(self.seeds, scales)):
            member = template if index == 0 else build_member(factory, seed, scale)
            self.layout.fill(list(self.rows), index, _trainable(member))
            fixed.append(_fixed(member))
        # Buffers and frozen weights that differ between members; the others are the template's.
        names = [name for name in fixed[0] if any(not torch.equal(each[name], fixed[0][name]) for each in fixed)]
        self.constants = {name: torch.stack([each[name] for each in fixed]) for name in names}

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
        state, outputs = {**weights, **self.constants}, []
        for index in range(len(next(iter(weights.values())))):
            own = {name: value[index] for name, value in state.items()}
            outputs.append(functional_call(self.template, own, (inputs[index] if per_member else inputs,)))
        return torch.stack(outputs)

    def state(self, weights: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """The members' state dicts, stacked, with other `weights` than the current ones if any are given."""
        template, own = self.template, {**(weights or self.stacked), **self.constants}
        # Tied weights are one tensor under two names.
        first = {id(value): name for name, value in (*template.named_parameters(), *template.named_buffers())}
        whole = template.state_dict(keep_vars=True)
        found = {n: own.get(first[id(value)], value.expand(len(self), *value.shape)) for n, value in whole.items()}
        return {name: value.detach().clone() for name, value in found.items()}

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


class _OneOrMany(Protocol[P, One, Many]):
    @overload
    def __call__(self, model: Population[nn.Module], world: World, *args: P.args, **options: P.kwargs) -> Many: ...
    @overload
    def __call__(self, model: nn.Module, world: World, *args: P.args, **options: P.kwargs) -> One: ...


def one_or_many(
    only: Callable[[Many], One],
) -> Callable[[Callable[Concatenate[nn.Module, World, P], Many]], _OneOrMany[P, One, Many]]:
    """Let a function that gives a result for every member give, for one model, the `only` one."""

    def decorate(function: Callable[Concatenate[nn.Module, World, P], Many]) -> _OneOrMany[P, One, Many]:
        @functools.wraps(function)
        def chosen(model: nn.Module, world: World, *args: P.args, **options: P.kwargs) -> One | Many:
            results = function(model, world, *args, **options)
            return results if isinstance(model, Population) else only(results)

        return cast("_OneOrMany[P, One, Many]", chosen)

    return decorate


def build_member(factory: Callable[[int], ModuleType], seed: int, scale: float) -> ModuleType:
    """`factory(seed)` with torch's generator seeded, its weight matrices multiplied by `scale`."""
    with seeded(seed):
        model = factory(seed)
    if not isinstance(model, nn.Module):
        raise BadInput(f"the factory must return a torch module, got {type(model).__name__}")
    if scale != 1.0:
        scale_weights(model, scale)
    return model


def _seed(value: object) -> int:
    try:
        return integer("seeds", int(value), low=0)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"seeds must be whole numbers of at least 0, got {shown(value)}") from None


def _trainable(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def _fixed(model: nn.Module) -> dict[str, Tensor]:
    frozen = {name: weight.detach() for name, weight in model.named_parameters() if not weight.requires_grad}
    return {**frozen, **{name: buffer.detach() for name, buffer in model.named_buffers()}}
