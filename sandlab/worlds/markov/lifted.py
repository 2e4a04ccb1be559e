"""An order-k chain as a first-order chain on windows of k tokens: its stationary and conditional distributions.

Kernels are float64 tensors (*lead, contexts, states); context index c = Σ_i x_{t−i−1} · states^i, so that the
reshaped kernel reads kernel[x_{t−k}, …, x_{t−1}, x_t]. (Varre, Yüce & Flammarion 2025, appendix H.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, require

__all__ = [
    "conditional_distribution",
    "lifted_chain",
    "order_of",
    "positive_stationary_distribution",
    "stationary_distribution",
    "token_distribution",
    "window_distribution",
]


def order_of(kernel: Float[Tensor, "*lead context states"]) -> int:
    """k with contexts = states^k."""
    contexts, states = kernel.shape[-2:]
    order = round(math.log(contexts) / math.log(states)) if contexts > 1 else 0
    require(states**order == contexts, "contexts", contexts, f"a power of the number of states ({states})")
    return order


def lifted_chain(kernel: Float[Tensor, "*lead context states"]) -> Float[Tensor, "*lead context context"]:
    """T[(i_1..i_k), (i_2..i_{k+1})] = P(i_{k+1} | i_1..i_k), all other entries 0."""
    contexts, states = kernel.shape[-2:]
    code = torch.arange(contexts, device=kernel.device)
    successors = (code * states % contexts).unsqueeze(-1) + torch.arange(states, device=kernel.device)
    matrix = kernel.new_zeros(*kernel.shape[:-2], contexts, contexts)
    return matrix.scatter_(-1, successors.expand(kernel.shape), kernel)


def stationary_distribution(kernel: Float[Tensor, "*lead context states"]) -> Float[Tensor, "*lead context"]:
    """π over windows with πᵀT = πᵀ and Σπ = 1: by elimination for few contexts, else (I − Tᵀ + 1·1ᵀ) π = 1.

    The system is regular exactly when the stationary distribution is unique; otherwise the kernel is refused.
    """
    matrix = lifted_chain(kernel.to(torch.float64))
    contexts = matrix.shape[-1]
    if contexts <= 8:
        probs = _eliminate(matrix)
        if probs.isfinite().all():
            return probs
    identity = torch.eye(contexts, dtype=matrix.dtype, device=matrix.device)
    system = identity - matrix.mT + 1.0
    right = matrix.new_ones(*matrix.shape[:-1], 1)
    solution, failed = torch.linalg.solve_ex(system, right)
    probs = solution.squeeze(-1)
    residual = (probs.unsqueeze(-2) @ matrix).squeeze(-2) - probs
    sound = (failed == 0).all() and probs.isfinite().all() and residual.abs().max() < 1e-8 and probs.min() > -1e-9
    if not sound:
        raise BadInput("the kernel has several stationary distributions: make every context reachable from every other")
    return (probs.clamp(min=0.0) / probs.clamp(min=0.0).sum(-1, keepdim=True)).contiguous()


def positive_stationary_distribution(kernel: Float[Tensor, "*lead context states"]) -> Float[Tensor, "*lead context"]:
    """The same for kernels without zeros, by elimination alone: no value is read, so a GPU is never synchronised."""
    return _eliminate(lifted_chain(kernel.to(torch.float64)))


def _eliminate(matrix: Float[Tensor, "*lead context context"]) -> Float[Tensor, "*lead context"]:
    """Censor the states one by one and put them back (Grassmann, Taksar & Heyman 1985): sums and quotients only.

    Not finite where a state cannot be left for an earlier one; the linear system decides those cases.
    """
    matrix = matrix.clone()
    for state in range(matrix.shape[-1] - 1, 0, -1):
        leaving = matrix[..., state, :state].sum(-1, keepdim=True)
        matrix[..., :state, state] /= leaving
        detour = matrix[..., :state, state].unsqueeze(-1) * matrix[..., state, :state].unsqueeze(-2)
        matrix[..., :state, :state] += detour
    probs = torch.ones_like(matrix[..., 0])
    for state in range(1, matrix.shape[-1]):
        probs[..., state] = (probs[..., :state] * matrix[..., :state, state]).sum(-1)
    return probs / probs.sum(-1, keepdim=True)


def window_distribution(kernel: Float[Tensor, "*lead context states"]) -> Float[Tensor, "*lead context states"]:
    """π(c) P(a|c): the stationary distribution of k + 1 tokens in a row."""
    return stationary_distribution(kernel).unsqueeze(-1) * kernel.to(torch.float64)


def token_distribution(kernel: Float[Tensor, "*lead context states"]) -> Float[Tensor, "*lead states"]:
    """The stationary distribution of one token."""
    return window_distribution(kernel).sum(-2)


def conditional_distribution(
    kernel: Float[Tensor, "*lead context states"], lags: Iterable[int]
) -> Float[Tensor, "*lead subcontext states"]:
    """p(x_t = a | x_{t−h}, h in lags) of the stationary chain, for any set of lags up to the order.

    Σ_w π(w) P(a|w) / Σ_w π(w) over the windows w that agree with the given tokens; rows are ordered like contexts
    (largest lag first). A pattern of probability 0 has the uniform row. (Appendix H.2 and lemma H.5.)
    """
    order, states = order_of(kernel), kernel.shape[-1]
    kept = sorted(set(lags))
    for lag in kept:
        require(1 <= lag <= order, "lag", lag, f"between 1 and the order ({order})")
    joint = window_distribution(kernel)
    lead = joint.ndim - 2
    joint = joint.reshape(*joint.shape[:-2], *([states] * (order + 1)))
    dropped = [lead + order - lag for lag in range(1, order + 1) if lag not in kept]
    if dropped:
        joint = joint.sum(dropped)
    joint = joint.flatten(lead, -2) if kept else joint.unsqueeze(-2)
    total = joint.sum(-1, keepdim=True)
    return torch.where(total > 0, joint / total.clamp(min=1e-300), 1.0 / states)
