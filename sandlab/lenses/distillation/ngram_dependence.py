"""How far predictions depend on the neighbouring n-gram: L_robust and L_close."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.learning.experiment import Snapshot
from sandlab.models.attention import Attention
from sandlab.models.base import build
from sandlab.models.transformer import TransformerConfig
from sandlab.registry import register
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar

__all__ = ["NgramDependence", "closeness", "model_probs", "neighbourhood", "robustness"]

Predict: TypeAlias = Callable[[Int[Tensor, "example position"]], Float[Tensor, "example position class"]]


def model_probs(model: nn.Module) -> Predict:
    """The model's probabilities, in evaluation mode and without gradients."""

    @torch.no_grad()
    def predict(inputs: Tensor) -> Tensor:
        training = model.training
        model.eval()
        try:
            return model(inputs).softmax(-1)
        finally:
            model.train(training)

    return predict


def neighbourhood(place: int, n: int, length: int, *, causal: bool = False) -> Bool[np.ndarray, "position"]:
    """n-gram(i) = {j : i − ⌈(n−1)/2⌉ ≤ j ≤ i + ⌊(n−1)/2⌋}; of a causal model the n − 1 tokens before i."""
    integer("n", n, low=1)
    j = np.arange(length)
    if causal:
        return (j > place - n) & (j < place)
    return (j >= place - (n // 2)) & (j <= place + (n - 1) // 2)


def _distance(p: Tensor, q: Tensor, tv: str) -> Tensor:
    choice("tv", tv, ("half", "l1"))
    return (p - q).abs().sum(-1) * (0.5 if tv == "half" else 1.0)


@register("lenses")
def robustness(
    predict: Predict,
    inputs: Int[Tensor, "example position"],
    place: int,
    n: int,
    *,
    vocab: int,
    mask: int | None,
    tv: str = "half",
) -> Float[Tensor, "example"]:
    """L_robust: TV between the prediction with token i masked and with its whole n-gram masked (eq. 4.94).

    Masked tokens show `mask` and no position attends to them (inputs + vocab). With mask=None, for a causal model
    ("skip n-gram", eq. 4.101): token i is predicted from all before it, or without i − n + 1 … i − 2.
    `place` counts positions of the inputs.
    """
    if mask is None:
        around = neighbourhood(place, n, inputs.shape[1], causal=True)
        around[place - 1] = False
        full, less = inputs, _hide(inputs, around, vocab)
        return _distance(predict(full)[:, place - 1], predict(less)[:, place - 1], tv)
    single = _masked(inputs, neighbourhood(place, 1, inputs.shape[1]), vocab, mask)
    whole = _masked(inputs, neighbourhood(place, n, inputs.shape[1]), vocab, mask)
    return _distance(predict(single)[:, place], predict(whole)[:, place], tv)


@register("lenses")
def closeness(
    predict: Predict,
    inputs: Int[Tensor, "example position"],
    place: int,
    n: int,
    *,
    vocab: int,
    mask: int | None,
    tv: str = "half",
) -> Float[Tensor, "example"]:
    """L_close: TV between the prediction from all other tokens and from the n-gram's alone (eqs. 4.95, 4.100)."""
    around = neighbourhood(place, n, inputs.shape[1], causal=mask is None)
    if mask is None:
        less = _hide(inputs, ~around, vocab)
        return _distance(predict(inputs)[:, place - 1], predict(less)[:, place - 1], tv)
    own = neighbourhood(place, 1, inputs.shape[1])
    single, alone = (_masked(inputs, hidden, vocab, mask) for hidden in (own, ~around | own))
    return _distance(predict(single)[:, place], predict(alone)[:, place], tv)


def _masked(inputs: Tensor, hidden: np.ndarray, vocab: int, mask: int) -> Tensor:
    """Hidden tokens show the mask, and their keys are hidden; the padding stays as it is."""
    where = torch.from_numpy(hidden).to(inputs.device) & (inputs < vocab)
    return torch.where(where, mask + vocab, inputs)


def _hide(inputs: Tensor, hidden: np.ndarray, vocab: int) -> Tensor:
    where = torch.from_numpy(hidden).to(inputs.device) & (inputs < vocab)
    return torch.where(where, inputs + vocab, inputs)


@dataclass(frozen=True)
class NgramDependence:
    """A probe: median L_robust and L_close over held-out sentences, for each n.

    ns         lengths of n-grams
    places     positions of the inputs that are predicted (the source: 30, 60, …, 420), those inside a sentence count
    examples   sentences of the held-out batch, at most
    tv         "half": ½‖p − q‖₁; "l1": ‖p − q‖₁, as the authors' code reports it
    """

    ns: tuple[int, ...] = (2, 3, 4, 5)
    places: tuple[int, ...] = tuple(range(30, 421, 30))
    examples: int = 128
    tv: str = "half"

    def __post_init__(self) -> None:
        require(len(self.ns) >= 1 and len(self.places) >= 1, "ns, places", (self.ns, self.places), "not empty")

    def __call__(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """robust and close (member, n)."""
        world, targets = snapshot.world, snapshot.batch.targets[: self.examples]
        base: Any = getattr(world, "world", world)
        masked = isinstance(base, MaskedGrammar) or (hasattr(base, "mask_token") and not _is_causal(snapshot))
        vocab, pad = base.vocab, base.pad
        clean = targets if masked else snapshot.batch.inputs[: self.examples]
        lengths = (clean % vocab != pad).sum(1)
        clean = torch.where(clean % vocab == pad, pad + vocab, clean) if masked else clean
        mask = base.mask_token if masked else None
        rows = [self._member(snapshot.model.member(i), clean, lengths, vocab, mask) for i in range(len(snapshot.model))]
        found = np.array(rows)
        return {"robust": found[:, 0], "close": found[:, 1]}

    def _member(self, model: nn.Module, clean: Tensor, lengths: Tensor, vocab: int, mask: int | None) -> np.ndarray:
        predict, values = _Remembering(model_probs(_able_to_hide(model))), _Lists()
        for place in self.places:
            rows = lengths > place + (1 if mask is not None else 0)
            if place >= clean.shape[1] or not rows.any():
                continue
            predict.forget()
            given = clean[rows]
            for column, n in enumerate(self.ns):
                for row, measure in enumerate((robustness, closeness)):
                    found = measure(predict, given, place, n, vocab=vocab, mask=mask, tv=self.tv)
                    values[row, column].append(found)
        result = np.full((2, len(self.ns)), np.nan)
        for (row, column), kept in values.items():
            result[row, column] = float(torch.cat(kept).median())
        return result


class _Lists(defaultdict[tuple[int, int], list[Tensor]]):
    """Lists by row and column."""

    def __init__(self) -> None:
        super().__init__(list)


class _Remembering:
    """Predictions that are asked for again (the same masked sentences for every n) are computed once."""

    def __init__(self, predict: Predict) -> None:
        self.predict = predict
        self.known: list[tuple[Tensor, Tensor]] = []

    def forget(self) -> None:
        self.known = []

    def __call__(self, inputs: Tensor) -> Tensor:
        for seen, found in self.known:
            if torch.equal(seen, inputs):
                return found
        self.known.append((inputs, self.predict(inputs)))
        return self.known[-1][1]


def _able_to_hide(model: nn.Module) -> nn.Module:
    """The model with keys that can be hidden; on a GPU with the fused attention kernel: nothing is recorded here."""
    config = getattr(model, "config", None)
    if isinstance(config, TransformerConfig) and not config.hidden_keys:
        able = build(replace(config, hidden_keys=True)).to(next(model.parameters()).device)
        able.load_state_dict(model.state_dict())
        model = able
    for part in model.modules():
        if isinstance(part, Attention) and next(model.parameters()).is_cuda:
            part.fused = True
    return model


def _is_causal(snapshot: Snapshot) -> bool:
    return bool(getattr(getattr(snapshot.model.template, "config", None), "causal", True))
