"""What every model of the zoo shares: a config, a registry name, saving and loading."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, integer, nearest

__all__ = ["Config", "Model", "seeded"]


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


class Model(nn.Module):
    """A network from inputs to logits whose every activation has a name.

    A subclass names its config class in `config_class`, takes its fields as keyword arguments and hands the checked
    config to `super().__init__`. `carries_members` says that stacked parameters work without `vmap` (see layers.py).
    """

    config_class: ClassVar[type[Config]] = Config
    carries_members: ClassVar[bool] = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    @classmethod
    def configure(cls, settings: dict[str, Any]) -> Any:
        """The checked config from keyword arguments; an unknown name is refused with the nearest one."""
        known = [field.name for field in dataclasses.fields(cls.config_class)]
        required = [
            field.name
            for field in dataclasses.fields(cls.config_class)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        for name in settings:
            if name not in known:
                hint = nearest(name, known) or f"it has {', '.join(known)}"
                raise BadInput(f"{cls.__name__} has no option {name!r}: {hint}")
        missing = [name for name in required if name not in settings]
        if missing:
            raise BadInput(f"{cls.__name__} needs {', '.join(missing)}: give it as a keyword argument")
        return cls.config_class(**settings)

    def activations(self) -> list[str]:
        """Every name that `record` and `replace` understand, in the order of definition."""
        return [name for name, part in self.named_modules() if name and not isinstance(part, nn.ModuleList)]

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def save(self, folder: str | Path) -> Path:
        """Write `config.json` and `weights.safetensors` into `folder`."""
        from sandlab.models.files import save

        return save(self, folder)

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
