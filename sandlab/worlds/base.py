"""What a world is: a distribution over examples whose truth is known."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import torch
from torch import Tensor

from sandlab.checking import checked, refuse_beyond_memory
from sandlab.errors import BadInput, integer, nearest, require

__all__ = ["Batch", "Predictor", "World", "cross_entropy"]

_MANY = 1 << 18  # examples from which on it is asked whether they fit into memory


@dataclass(frozen=True)
class Batch:
    """Examples of a world: example axis first, time second.

    inputs   what the model sees: tokens (example, time), or features (example, ...) for worlds that are not sequences
    targets  what it should predict: classes of the mask's shape, or distributions over classes with one axis more
    mask     where the loss counts; a time axis shorter than the inputs' refers to the last positions (of length 1 when
             there is one answer, at the end)
    truth    named latent tensors, example axis first: states, topics, stack depth, kernels
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    truth: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.inputs.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Batch:
        truth = {name: value[rows] for name, value in self.truth.items()}
        return Batch(self.inputs[rows], self.targets[rows], self.mask[rows], truth)

    def to(self, device: str | torch.device) -> Batch:
        truth = {name: value.to(device) for name, value in self.truth.items()}
        return Batch(self.inputs.to(device), self.targets.to(device), self.mask.to(device), truth)

    @property
    def soft(self) -> bool:
        """Whether targets are distributions over classes rather than classes."""
        return self.targets.ndim == self.mask.ndim + 1


def cross_entropy(log_probs: Tensor, batch: Batch) -> Tensor:
    """Mean over counted targets of −Σ_s y(s) log p(s), in nats; y is one-hot when targets are classes.

    Predictions for more positions than the batch has targets for are cut to the last ones.
    """
    if batch.mask.ndim >= 2:
        log_probs = log_probs[..., -batch.mask.shape[-1] :, :]
    if batch.soft:
        targets = batch.targets.to(log_probs.dtype)
        # 0 · log 0 = 0: a class that the target excludes costs nothing, whatever its predicted probability.
        losses = -torch.where(targets > 0, targets * log_probs, 0.0).sum(-1)
    else:
        losses = -log_probs.gather(-1, batch.targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    counted = batch.mask
    return torch.where(counted, losses, 0.0).sum() / counted.sum().clamp(min=1)


def _bounded(sample: Callable[..., Batch]) -> Callable[..., Batch]:
    """`sample` with its arguments checked; one example tells whether very many fit into memory."""
    draw = checked(sample)

    @functools.wraps(draw)
    def bounded(self: World, n: int, *, rng: torch.Generator) -> Batch:
        if isinstance(n, int) and _MANY < n < 2**63 and isinstance(rng, torch.Generator):
            one = draw(self, 1, rng=torch.Generator(rng.device).manual_seed(0))
            tensors = [one.inputs, one.targets, one.mask, *one.truth.values()]
            refuse_beyond_memory(f"a batch of {n} examples", 2.0 * n * sum(value.nbytes for value in tensors))
        return draw(self, n, rng=rng)

    return bounded


Predictor: TypeAlias = Callable[[Batch], Tensor]
"""Log-probabilities of every class at every target of a batch."""


@dataclass(frozen=True)
class World:
    """A distribution with a known truth. Subclasses are frozen dataclasses whose fields are the parameters.

    A subclass gives `sample` and, where they make sense, `oracle`, `accepts`, `vocab`, `outputs` and `letters`,
    and checks its fields in `__post_init__` with the functions of `sandlab.errors`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("oracle", "accepts", "render"):
            if name in cls.__dict__:
                setattr(cls, name, checked(cls.__dict__[name]))
        if "sample" in cls.__dict__:
            cls.sample = _bounded(cls.__dict__["sample"])  # type: ignore[method-assign]

    @property
    def vocab(self) -> int:
        """Number of input tokens."""
        raise NotImplementedError(f"{type(self).__name__} has no token alphabet")

    @property
    def outputs(self) -> int:
        """Number of predicted classes; the size of the input alphabet by default."""
        return self.vocab

    @property
    def letters(self) -> list[str]:
        """Text of each token, for `render`."""
        return [str(token) for token in range(self.vocab)]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        """n independent examples on the generator's device."""
        raise NotImplementedError

    def at(self, step: int) -> World:
        """The world that a training run draws its batch of this step from; only a curriculum gives another one."""
        return self

    def oracle(self, batch: Batch) -> Tensor:
        """Log-probabilities (float64) of the Bayes-optimal prediction given what the model sees."""
        raise NotImplementedError(f"{type(self).__name__} has no exact oracle")

    def optimal_loss(self, batch: Batch) -> float:
        """Loss of the oracle on this batch, in nats per counted target: no predictor does better in expectation."""
        return float(cross_entropy(self.oracle(batch), batch))

    def baselines(self) -> dict[str, Predictor]:
        """Suboptimal predictors by name."""
        return {}

    def accepts(self, tokens: Tensor) -> bool | Tensor:
        """Membership: one bool for one string (time), one per row for many (example, time)."""
        raise NotImplementedError(f"{type(self).__name__} is not a language")

    @checked
    def render(self, tokens: Tensor) -> str:
        """One example's tokens as text."""
        letters = self.letters
        joiner = "" if all(len(letter) == 1 for letter in letters) else " "
        return joiner.join(letters[int(token)] for token in tokens)

    def read_text(self, text: str) -> Tensor:
        """The tokens of a text: the inverse of `render`, wherever the letters allow it.

        >>> Dyck(types=2).read_text("([])")
        """
        letters = self.letters
        known = {letter: token for token, letter in enumerate(letters)}
        if len(known) < len(letters):
            raise BadInput(f"{type(self).__name__} writes two tokens alike: its text cannot be read back")
        single = all(len(letter) == 1 for letter in letters)
        words = [sign for sign in text if sign in known or not sign.isspace()] if single else text.split()
        for word in words:
            if word not in known:
                hint = nearest(word, known) or f"it has {' '.join(letters[:20])}"
                raise BadInput(f"{type(self).__name__} has no letter {word!r}: {hint}")
        return torch.tensor([known[word] for word in words], dtype=torch.long)

    def stream(self, batch_size: int, *, rng: torch.Generator) -> Iterator[Batch]:
        """An endless stream of fresh batches."""
        integer("batch_size", batch_size, low=1)
        while True:
            yield self.sample(batch_size, rng=rng)

    @classmethod
    def parameters(cls) -> list[dataclasses.Field[Any]]:
        """The fields of the world, for `sandlab show` and `--set`."""
        return list(dataclasses.fields(cls))

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Build from named values; an unknown name is refused with the nearest one."""
        known = [parameter.name for parameter in cls.parameters()]
        for name in settings:
            if name not in known:
                raise BadInput(f"{cls.__name__} has no parameter {name!r}: {nearest(name, known) or f'it has {known}'}")
        return cls(**settings)

    def _check_count(self, n: int) -> None:
        require(isinstance(n, int) and n >= 1, "n", n, "a whole number of at least 1")
