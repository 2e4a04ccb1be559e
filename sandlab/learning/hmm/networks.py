"""Networks as masked predictors of HMMs: from what they predict to tables that can be decomposed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.learning.hmm.gaussian_recovery import Candidate, candidates_from_columns
from sandlab.worlds.hmm.masked import MaskedPrediction

__all__ = [
    "conditionals_table",
    "joint_head_table",
    "network_predictor",
    "read_network_ghmm",
    "separate_heads_table",
    "vertex_columns",
]


def network_predictor(model: nn.Module, world: MaskedPrediction) -> Callable[[np.ndarray], np.ndarray]:
    """x ↦ the network's E[⊗ x_τ | x], one array axis per target: what the recovery algorithms take.

    For a network trained on `MaskedPrediction` by the squared loss, whose outputs are the means themselves.
    """
    parameter = next(model.parameters())
    shape = [len(world.model.means)] * len(world.parsed.targets)

    def predict(x: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(np.asarray(x)).to(parameter.device)
        with torch.no_grad():
            found = model(given if given.dtype == torch.long else given.to(parameter.dtype))
        return found.double().cpu().numpy().reshape(len(given), *shape)

    return predict


def _strings(d: int, visible: int) -> Int[Tensor, "strings three"]:
    """All strings of three tokens whose first `visible` ones are shown; the mask is d."""
    shown = torch.cartesian_prod(*[torch.arange(d)] * visible).reshape(-1, visible)
    return torch.cat([shown, torch.full((len(shown), 3 - visible), d)], 1)


def _probs(model: nn.Module, strings: Tensor) -> Float[np.ndarray, "strings time token"]:
    with torch.no_grad():
        logits = model(strings.to(next(model.parameters()).device))
    return logits.double().softmax(-1).cpu().numpy()


def joint_head_table(model: nn.Module, d: int) -> Float[np.ndarray, "d d d"]:
    """P(x₂, x₃ | x₁) of a network that predicts both hidden tokens as one class."""
    return _probs(model, _strings(d, 1))[:, -1].reshape(d, d, d)


def separate_heads_table(model: nn.Module, d: int) -> Float[np.ndarray, "d d d"]:
    """P(x₂ | x₁) P(x₃ | x₁): all that a network says which predicts each of two hidden tokens for itself."""
    probs = _probs(model, _strings(d, 1))
    return np.einsum("xa,xb->xab", probs[:, 1], probs[:, 2])


def conditionals_table(model: nn.Module, d: int) -> Float[np.ndarray, "d d d"]:
    """P(x₂, x₃ | x₁) from P(x₂ | x₁, x₃) and P(x₃ | x₁, x₂) of a network that predicts one hidden token.

    Brook's lemma: log P(a, b) = log P(a | b) − log P(a° | b) + log P(b | a°) + const, averaged over all a°.
    """
    pairs = torch.cartesian_prod(torch.arange(d), torch.arange(d))
    hidden = torch.full((len(pairs), 1), d)
    second = np.log(_probs(model, torch.cat([pairs[:, :1], hidden, pairs[:, 1:]], 1))[:, 1]).reshape(d, d, d)
    third = np.log(_probs(model, torch.cat([pairs, hidden], 1))[:, 2]).reshape(d, d, d)
    logs = second.transpose(0, 2, 1) + (third - second.transpose(0, 2, 1)).mean(1, keepdims=True)
    table = np.exp(logs - logs.max((1, 2), keepdims=True))
    return table / table.sum((1, 2), keepdims=True)


def vertex_columns(answers: Float[np.ndarray, "n d"], states: int) -> Float[np.ndarray, "d k"]:
    """k corners of the hull of noisy points, by successive projections: the columns of MT among the answers MTφ(x).

    The point of largest norm is a corner; what is parallel to it is removed, and so on (Araújo et al. 2001). A
    coordinate of size 1 is added, so that corners are found in an affine hull.
    """
    lifted = np.concatenate([answers, np.ones((len(answers), 1))], 1)
    chosen: list[int] = []
    for _ in range(states):
        chosen.append(int((lifted**2).sum(1).argmax()))
        direction = lifted[chosen[-1]] / np.linalg.norm(lifted[chosen[-1]])
        lifted = lifted - np.outer(lifted @ direction, direction)
    return answers[chosen].T


def read_network_ghmm(
    predict: Callable[[np.ndarray], np.ndarray], d: int, states: int, *, reach: float, seed: int = 0, norm: float = 1.0
) -> list[Candidate]:
    """(M, T) read off a learnt E[x₂ | x₁], whose corners are sought within `reach`, where it was trained."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(20_000, d))
    far = predict(reach * directions / np.linalg.norm(directions, axis=1, keepdims=True))
    return candidates_from_columns(predict, vertex_columns(far, states), rng, norm=norm)
