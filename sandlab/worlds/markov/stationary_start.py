"""The exact Bayes predictor of an unknown binary chain whose first tokens follow its stationary distribution."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["binary_bayes", "binary_next_probs"]

ROWS_AT_ONCE = 8192


def binary_bayes(tokens: Int[Tensor, "example time"], concentration: float) -> Float[Tensor, "example time 2"]:
    """P(x_{t+1} | x_0 … x_t) when p = P(1|0) and q = P(0|1) are Beta(α, α) and x_0 ~ (q, p)/(p + q)."""
    before, after = tokens[:, :-1], tokens[:, 1:]
    seen = torch.stack([(before == a) & (after == b) for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))], -1)
    counts = F.pad(seen.to(torch.int64).cumsum(1), (0, 0, 1, 0))
    starts = F.one_hot(tokens[:, :1], 2).expand(-1, tokens.shape[1], -1)
    return binary_next_probs(counts, tokens, starts, concentration)


def binary_next_probs(
    transitions: Int[Tensor, "*lead 4"],
    state: Int[Tensor, "*lead"],
    starts: Int[Tensor, "*lead 2"],
    concentration: float,
) -> Float[Tensor, "*lead 2"]:
    """P(token after `state`) given counts of transitions (00, 01, 10, 11) and of stationary starts (0, 1).

    With the weight w = (q/(p+q))^{starts 0} (p/(p+q))^{starts 1}: P(leave 0) = E[p·w]/E[w], P(leave 1) = E[q·w]/E[w]
    under the Beta posteriors of the transitions. The double integrals are sums over a grid in log-odds whose steps grow
    towards the ends (double-exponential quadrature): the error is below 1e-10.
    """
    facts = torch.cat([starts, transitions, state.unsqueeze(-1)], -1)
    # Many positions have equal counts: each distinct case is integrated once, those with equal starts together.
    cases, where = facts.reshape(-1, 7).unique(dim=0, return_inverse=True)
    leave = torch.empty(len(cases), dtype=torch.float64, device=cases.device)
    for group in starts.reshape(-1, 2).unique(dim=0):
        rows = (cases[:, :2] == group).all(-1).nonzero().squeeze(-1)
        for some in rows.split(ROWS_AT_ONCE):
            leave[some] = _leaving_probability(cases[some, 2:], group, concentration)
    one = torch.where(cases[:, -1] == 0, leave, 1 - leave)[where].view(state.shape)
    return torch.stack([1 - one, one], -1)


def _leaving_probability(
    cases: Int[Tensor, "case 5"], starts: Int[Tensor, "2"], concentration: float
) -> Float[Tensor, "case"]:
    """E[(p or q) · w] / E[w] for cases (counts of 00, 01, 10, 11; current state) with the same starts."""
    log_odds, log_step = _grid(concentration, int(cases[:, :4].sum(-1).max()), cases.device)
    log_leave, log_stay = F.logsigmoid(log_odds), F.logsigmoid(-log_odds)
    contrast = log_leave.unsqueeze(-1) - log_leave
    # Row index: p; column index: q.
    weight = (starts[0] * F.logsigmoid(-contrast) + starts[1] * F.logsigmoid(contrast)).exp()

    def posterior(stays: Tensor, moves: Tensor) -> Tensor:
        logs = (concentration + moves).unsqueeze(-1) * log_leave + (concentration + stays).unsqueeze(-1) * log_stay
        return (logs + log_step).softmax(-1)

    from_zero, from_one = posterior(cases[:, 0], cases[:, 1]), posterior(cases[:, 3], cases[:, 2])
    leaving = log_leave.exp()
    weighted = from_zero @ weight
    norm = (weighted * from_one).sum(-1)
    leave_zero = ((from_zero * leaving) @ weight * from_one).sum(-1)
    leave_one = (weighted * from_one * leaving).sum(-1)
    return torch.where(cases[:, 4] == 0, leave_zero, leave_one) / norm


def _grid(concentration: float, transitions: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Log-odds v = π sinh(u) on a uniform grid in u, and log dv/du: fine enough for that many transitions."""
    reach = math.asinh(40.0 / concentration / math.pi)
    step = min(0.06, 0.6 / math.sqrt(transitions + 4 * concentration + 4) / math.pi)
    u = torch.arange(-reach, reach + step, step, dtype=torch.float64, device=device)
    return math.pi * u.sinh(), u.cosh().log()
