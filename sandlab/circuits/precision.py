"""How many fractional bits a network needs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.errors import integer

__all__ = ["PrecisionSweep", "bits_needed", "precision_sweep", "rounded"]


@dataclass(frozen=True)
class PrecisionSweep:
    """accuracy[i] with `bits[i]` fractional bits; `needed`: the fewest bits from which on it is exact (or None)."""

    bits: tuple[int, ...]
    accuracy: tuple[float, ...]

    @property
    def needed(self) -> int | None:
        found = None
        for bits, accuracy in sorted(zip(self.bits, self.accuracy), reverse=True):
            if accuracy < 1:
                break
            found = bits
        return found


def precision_sweep(
    model: nn.Module,
    words: Int[Tensor, "example time"],
    targets: Int[Tensor, "example time"],
    *,
    bits: Sequence[int] = tuple(range(2, 41)),
) -> PrecisionSweep:
    """Accuracy of the model when every weight and every activation is truncated to c fractional bits.

    x becomes ⌊x·2^c⌋/2^c: weights once, activations at every module's output. The claim to check is c = Θ(log T).
    """
    return PrecisionSweep(tuple(bits), tuple(_accuracy(model, words, targets, count) for count in bits))


def bits_needed(
    model: nn.Module, words: Int[Tensor, "example time"], targets: Int[Tensor, "example time"], *, most: int = 40
) -> int | None:
    """Fewest fractional bits with which the model is exact on these words, by bisection; None above `most`.

    Bisection assumes that a model which is exact with c bits is exact with more; `precision_sweep` does not.
    """
    if _accuracy(model, words, targets, most) < 1:
        return None
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _accuracy(model, words, targets, middle) == 1 else (middle, high)
    return high


def _accuracy(model: nn.Module, words: Tensor, targets: Tensor, bits: int) -> float:
    with rounded(model, bits) as coarse, torch.no_grad():
        return float((coarse(words).argmax(-1) == targets).double().mean())


@contextmanager
def rounded(model: nn.Module, bits: int) -> Iterator[nn.Module]:
    """A copy of the model with `bits` fractional bits in its weights and activations."""
    scale = 2.0 ** integer("bits", bits, 0)

    def cut(value: Tensor) -> Tensor:
        return (value * scale).floor() / scale

    def hook(module: nn.Module, inputs: object, output: object) -> object:
        return cut(output) if isinstance(output, Tensor) and output.is_floating_point() else output

    coarse = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in coarse.parameters():
            parameter.copy_(cut(parameter))
    for module in coarse.modules():
        module.register_forward_hook(hook)
    yield coarse
