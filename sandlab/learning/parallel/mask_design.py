"""Which law of masks is best: minimise the variance of the estimator, or the relaxation time of the sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, integer
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw

__all__ = ["MaskDesign", "best_mask_law"]

GOALS = ("variance", "gap")


@dataclass(frozen=True, eq=False)
class MaskDesign:
    """The law found, and the goal's value (Tr Γ, or 1/gap) after each step."""

    mask_law: MaskLaw
    values: Float[np.ndarray, "step"]


def best_mask_law(
    law: FiniteLaw,
    statistics: Float[np.ndarray, "state parameter"],
    masks: np.ndarray,
    *,
    goal: str = "variance",
    adaptive: bool = False,
    steps: int = 300,
    lr: float = 0.1,
) -> MaskDesign:
    """The distribution over the given masks with the least Tr Γ ("variance") or 1/(1 − λ₂) of its block dynamics.

    By Adam on the logits, from the uniform law; an adaptive law has logits of its own for every state. Larger sets are
    better statistically, so the list is what one can afford to predict at once.
    """
    choice("goal", goal, GOALS)
    integer("steps", steps, low=1)
    problem = _Problem(law, statistics, np.asarray(masks, dtype=bool))
    logits = torch.zeros((len(law), len(masks)) if adaptive else (len(masks),), dtype=torch.float64, requires_grad=True)
    optimizer, values = torch.optim.Adam([logits], lr=lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        value = problem.value(logits.softmax(-1), goal)
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    return MaskDesign(MaskLaw(problem.masks, logits.detach().softmax(-1).numpy()), np.array(values))


class _Problem:
    """Tr Γ and 1/gap as differentiable functions of the mask probabilities."""

    def __init__(self, law: FiniteLaw, statistics: np.ndarray, masks: np.ndarray) -> None:
        self.masks, self.probs = masks, torch.as_tensor(law.probs)
        self.statistics = torch.as_tensor(statistics)
        self.groups = [torch.as_tensor(np.ascontiguousarray(law.groups(mask))) for mask in masks]

    def value(self, chosen: Tensor, goal: str) -> Tensor:
        table = chosen.expand(len(self.probs), len(self.masks))
        if goal == "variance":
            return torch.linalg.inv(self._covariance(table, self.statistics)).trace()
        # The Dirichlet form in the basis √p·f is I − D^½ P D^(−½): its second smallest eigenvalue is the gap.
        scaled = torch.diag(self.probs.clamp(min=1e-300).rsqrt())
        return 1 / torch.linalg.eigvalsh(self._covariance(table, scaled))[1]

    def _covariance(self, table: Tensor, functions: Float[Tensor, "state function"]) -> Tensor:
        """E_K E Cov(f, g | X_−K, K) for all pairs of functions."""
        total = functions.new_zeros(functions.shape[1], functions.shape[1])
        for place, groups in enumerate(self.groups):
            weights = (self.probs * table[:, place])[groups]
            given = weights / weights.sum(1, keepdim=True).clamp(min=1e-300)
            values = functions[groups]
            centred = values - torch.einsum("vh,vhd->vd", given, values).unsqueeze(1)
            total = total + torch.einsum("vh,vhd,vhe->de", weights, centred, centred)
        return total
