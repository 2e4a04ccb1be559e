"""What all models share: a config, a registry name, saving and loading."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from sandlab.checking import checked, sized
from sandlab.errors import BadInput, integer, nearest, number, require, shown

__all__ = ["Config", "Model", "build", "check_length", "configured", "seeded"]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Weights drawn inside the block depend on `seed` alone, and no other draw is disturbed.

    >>> with seeded(3):
    ...     model = Transformer(vocab=3, length=64)
    """
    integer("seed", seed, low=0)
    # torch.manual_seed would also seed GPUs that are not yet in use, and disturb their later draws.
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus):
        torch.default_generator.manual_seed(seed)
        if gpus:
            torch.cuda.manual_seed_all(seed)
        yield


@dataclass(frozen=True)
class Config:
    """The parameters of a model. Subclasses are frozen dataclasses that check their fields in `__post_init__`."""

    def check_integers(self, *names: str, low: int = 1) -> None:
        """Refuse fields that are not whole numbers of at least `low`; None is allowed where the type says so."""
        for name in self._given(names):
            integer(name, getattr(self, name), low=low, high=_MOST.get(name))

    def check_numbers(self, *names: str, low: float | None = None, high: float | None = None) -> None:
        """Refuse fields that are not finite numbers in [low, high]; None is allowed where the type says so."""
        for name in self._given(names):
            number(name, getattr(self, name), low=low, high=high)

    def _given(self, names: tuple[str, ...]) -> list[str]:
        words = ("None", "Optional")
        optional = {field.name for field in dataclasses.fields(self) if any(word in str(field.type) for word in words)}
        return [name for name in names if name not in optional or getattr(self, name) is not None]


Options = ParamSpec("Options")
ConfigType = TypeVar("ConfigType", bound=Config)
ModelType = TypeVar("ModelType", bound="Model")
_models: dict[type[Config], type[Model]] = {}
_configs: dict[Callable[..., None], type[Config]] = {}
_MOST = {"layers": 1024, "heads": 1024}  # each is a Python object of its own


def configured(
    config_class: Callable[Options, ConfigType],
) -> Callable[[Callable[[ModelType, ConfigType], None]], Callable[Concatenate[ModelType, Options], None]]:
    """Let a model's `__init__(self, config)` take the fields of `config_class` as its parameters.

    Editors and type checkers then know every option; an unknown one is refused with the nearest name.

    >>> class Lines(Model):
    ...     @configured(LinesConfig)
    ...     def __init__(self, config: LinesConfig) -> None:
    ...         super().__init__(config)
    """
    assert isinstance(config_class, type)
    checked(config_class)

    def wrap(init: Callable[[ModelType, ConfigType], None]) -> Callable[Concatenate[ModelType, Options], None]:
        @functools.wraps(init)
        def construct(self: ModelType, *args: Options.args, **options: Options.kwargs) -> None:
            _check_options(type(self), config_class, len(args), options)
            with sized(type(self).__name__):
                init(self, config_class(*args, **options))

        construct.__signature__ = inspect.signature(config_class)  # type: ignore[attr-defined]
        _configs[construct] = config_class
        return construct

    return wrap


def build(config: Config) -> Model:
    """The model that a config describes, with freshly drawn weights."""
    if type(config) not in _models:
        raise BadInput(f"no model is made from a {type(config).__name__}: give a model's config")
    return _models[type(config)].from_config(config)


def check_length(time: int, longest: int) -> None:
    """Refuse sequences for which a model of `longest` positions was not built."""
    require(1 <= time <= longest, "sequence length", time, f"1 to {longest}", "build the model with a larger length")


class Model(nn.Module):
    """A network from inputs to logits; each of its activations has a name.

    A subclass decorates its `__init__` with `configured(ItsConfig)` and passes the checked config to
    `super().__init__`. `carries_members` says that stacked parameters work without `vmap` (see layers.py).
    """

    config_class: ClassVar[type[Config]] = Config
    carries_members: ClassVar[bool] = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "forward" in cls.__dict__:
            cls.forward = _on_tensors(cls.__dict__["forward"])  # type: ignore[method-assign]
        init = cls.__dict__.get("__init__")
        if init in _configs:
            cls.config_class = _configs[init]
            _models[cls.config_class] = cls

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The model of a config, with freshly drawn weights."""
        return cls(**{field.name: getattr(config, field.name) for field in dataclasses.fields(config)})

    def forward(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def activations(self) -> list[str]:
        """Every name that `record` and `patch` understand, in the order of definition."""
        return [name for name, part in self.named_modules() if name and not isinstance(part, nn.ModuleList)]

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def save(self, folder: str | Path) -> Path:
        """Write `config.json` and `weights.safetensors` into `folder`."""
        from sandlab.models.io import save

        return save(self, folder)

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


def _on_tensors(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A forward pass that refuses what is not a tensor with at least one axis."""

    @functools.wraps(forward)
    def checked_forward(self: Model, *inputs: Any, **options: Any) -> Tensor:
        if inputs and (not isinstance(inputs[0], Tensor) or inputs[0].ndim == 0):
            raise BadInput(f"inputs must be a tensor of examples, got {shown(inputs[0])}")
        return forward(self, *inputs, **options)

    return checked_forward


def _check_options(
    model: type[Model], config_class: type[Config], positional: int, options: Mapping[str, object]
) -> None:
    """Refuse options that the config does not have, and say which are missing."""
    fields = dataclasses.fields(config_class)
    known = [field.name for field in fields]
    for name in options:
        if name not in known:
            hint = nearest(name, known) or f"it has {', '.join(known)}"
            raise BadInput(f"{model.__name__} has no option {name!r}: {hint}")
    required = [
        field.name
        for field in fields[positional:]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in required if name not in options]
    if missing:
        raise BadInput(f"{model.__name__} needs {', '.join(missing)}: give it as a keyword argument")
