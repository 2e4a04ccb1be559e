"""Sampling many chains at once: kernels with Dirichlet rows, inverse-CDF draws, loops and scans over time.

A step of a chain is x_t = #{j : u_t ≥ F_j(context)} with a uniform number u_t and the cumulative probabilities F of
the context's row. For given uniforms a step is therefore a map from contexts to contexts, and maps compose
associatively: besides the loop over time (vectorised over examples) there is a scan with ⌈log₂ time⌉ rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.worlds._row_sampler import RowSampler

__all__ = ["binary_walk", "dirichlet_rows", "shared_walk", "walk", "walk_graph"]

Plan = Sequence[tuple[int, tuple[int, ...]]]
"""Positions to draw, each with the positions of its parents."""


def dirichlet_rows(
    shape: tuple[int, ...], concentration: float, *, rng: torch.Generator
) -> Float[Tensor, "*shape states"]:
    """Independent Dirichlet(α, …, α) distributions along the last axis, float64.

    Gamma draws, normalised. For α < 1 they are computed in logarithms, Γ(α) = Γ(α + 1) · U^{1/α}, and divided by the
    largest of their row, so that a small α never gives a row of zeros.
    """
    if concentration == 1.0:
        gammas = -torch.log1p(-_uniform64(shape, rng))
    elif concentration == 0.5:
        # Γ(1/2) is half a squared normal; the clamp gives a draw of exactly 0 a tiny positive probability.
        gammas = torch.randn(shape, device=rng.device, generator=rng).to(torch.float64).square_().clamp_(min=1e-30)
    elif concentration > 1.0:
        gammas = _gamma(shape, concentration, rng)
    else:
        logs = _gamma(shape, concentration + 1.0, rng).log_()
        logs += torch.log1p(-_uniform64(shape, rng)) / concentration
        gammas = (logs - logs.amax(-1, keepdim=True)).exp_()
    return gammas / gammas.sum(-1, keepdim=True)


def _uniform64(shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return torch.rand(shape, dtype=torch.float64, device=rng.device, generator=rng)


def _gamma(shape: tuple[int, ...], alpha: float, rng: torch.Generator) -> Tensor:
    """Γ(α ≥ 1) by the method of Marsaglia & Tsang (2000): all entries at once, then the few rejected ones again.

    d (1 + c z)³ with d = α − 1/3, c = 1/√(9d), z normal, kept when log U < z²/2 + d − d v + d log v. On a GPU torch's
    own kernel does the same in every thread; looking for rejected entries would synchronise with the device.
    """
    if rng.device.type != "cpu":
        shapes = torch.full(shape, alpha, dtype=torch.float64, device=rng.device)
        return torch._standard_gamma(shapes, generator=rng)
    d = alpha - 1 / 3
    c = (9 * d) ** -0.5
    normal = torch.randn(shape, device=rng.device, generator=rng).to(torch.float64)
    uniform = torch.rand(shape, device=rng.device, generator=rng).to(torch.float64)
    cube = (1 + c * normal) ** 3
    keep = (cube > 0) & (torch.log1p(-uniform) < normal.square() / 2 + d * (1 - cube + cube.clamp(min=1e-300).log()))
    gammas = d * cube
    rejected = (~keep).nonzero(as_tuple=True)
    if len(rejected[0]):
        gammas[rejected] = _gamma(rejected[0].shape, alpha, rng)
    return gammas


def thresholds(probs: Float[Tensor, "*lead states"]) -> Float[Tensor, "*lead inner"]:
    """F_j = p_0 + … + p_j for all but the last state, float32 (rounded from float64: probability 1 stays 1)."""
    return probs.to(torch.float64).cumsum(-1)[..., :-1].to(torch.float32)


def draw(probs: Float[Tensor, "*lead states"], *, rng: torch.Generator) -> Int[Tensor, "*lead"]:
    """One draw from each distribution."""
    uniform = torch.rand(probs.shape[:-1], device=rng.device, generator=rng)
    return (uniform.unsqueeze(-1) >= thresholds(probs)).sum(-1)


def walk(
    kernels: Float[Tensor, "kernel context states"],
    start: Int[Tensor, "example memory"],
    steps: int,
    lags: tuple[int, ...],
    *,
    rng: torch.Generator,
) -> Int[Tensor, "example time"]:
    """Tokens x_0 … x_{memory+steps−1}: the start, then x_t drawn from the row of (x_{t−h} : h in lags, largest first).

    One kernel for all examples, or one per example. The index of the context's row is Σ_i x_{t−h_i} · states^i with the
    smallest lag at i = 0.
    """
    states, memory = kernels.shape[-1], start.shape[1]
    lags = tuple(sorted(lags))
    uniform = torch.rand(steps, len(start), device=rng.device, generator=rng)
    cdf = thresholds(kernels)
    contiguous = lags == tuple(range(1, memory + 1))
    if contiguous and _scan_pays(kernels.shape[1], states, len(start), steps, rng.device):
        return _scan(cdf, start, uniform, states)
    plan = [(memory + step, tuple(memory + step - lag for lag in lags)) for step in range(steps)]
    return _loop(cdf, _buffer(start, memory + steps), uniform, states, plan)


def shared_walk(
    sampler: RowSampler,
    start: Int[Tensor, "example memory"],
    steps: int,
    lags: tuple[int, ...],
    *,
    rng: torch.Generator,
) -> Int[Tensor, "example time"]:
    """`walk` with one kernel for all examples, whose sampler is prepared once."""
    memory = start.shape[1]
    lags = tuple(sorted(lags))
    buffer = _buffer(start, memory + steps)
    tokens = sampler.array(buffer)
    for time, numbers in enumerate(sampler.numbers(steps, len(start), rng), start=memory):
        row = tokens[time - lags[0]]
        for power, lag in enumerate(lags[1:], start=1):
            row = row + tokens[time - lag] * sampler.states**power
        tokens[time] = sampler.draw(row, *numbers)
    return buffer.T


def walk_graph(
    kernels: Float[Tensor, "kernel context states"],
    tokens: Int[Tensor, "example time"],
    plan: Plan,
    *,
    rng: torch.Generator,
) -> Int[Tensor, "example time"]:
    """Draw the planned positions of `tokens` in turn, each from the row of its parents' tokens; the others are kept.

    plan: (position, positions of its parents); the row has the index Σ_i x_{parent i} · states^i.
    """
    uniform = torch.rand(len(plan), len(tokens), device=rng.device, generator=rng)
    return _loop(thresholds(kernels), tokens.T.contiguous(), uniform, kernels.shape[-1], plan)


def binary_walk(
    stay_up: float, go_up: float, start: Int[Tensor, "example"], steps: int, *, rng: torch.Generator
) -> Int[Tensor, "example time"]:
    """A two-state chain with P(1|1) = stay_up and P(1|0) = go_up, `start` included, one byte per token.

    For given uniforms a step is a constant or, between the two probabilities, the identity (the flip when
    stay_up < go_up): x_t = sure_t ∨ (passing_t ∧ x_{t−1}), two bytes per token composed by three logical operations.
    """
    low, high = min(stay_up, go_up), max(stay_up, go_up)
    uniform = torch.rand(steps, len(start), device=rng.device, generator=rng)
    sure, passing = uniform < low, uniform < high
    flip = stay_up < go_up
    first = start.bool()
    if flip:
        # y_t = x_t ⊕ (t odd) turns flips into identities; on odd steps the constants change sides.
        sure_odd = ~passing[0::2]
        passing[0::2] = ~sure[0::2]
        sure[0::2] = sure_odd
    tokens = torch.cat([first.unsqueeze(0), _prefix(sure, passing, first)])
    if flip:
        tokens[1::2] = ~tokens[1::2]
    return tokens.T.contiguous().view(torch.uint8)


def _prefix(sure: Tensor, passing: Tensor, first: Tensor) -> Tensor:
    """All x_t of x_t = sure_t ∨ (passing_t ∧ x_{t−1}), time axis first, by composing neighbours and recursing."""
    steps = len(sure)
    if steps <= 4:
        values = torch.empty_like(sure)
        for step in range(steps):
            first = sure[step] | (passing[step] & first)
            values[step] = first
        return values
    even = steps - steps % 2
    pair_sure = sure[1:even:2] | (passing[1:even:2] & sure[0:even:2])
    later = _prefix(pair_sure, passing[0:even:2] & passing[1:even:2], first)
    before = torch.cat([first.unsqueeze(0), later])[: (steps + 1) // 2]
    values = torch.empty_like(sure)
    values[1:even:2] = later
    values[0::2] = sure[0::2] | (passing[0::2] & before)
    return values


def _buffer(start: Int[Tensor, "example memory"], time: int) -> Int[Tensor, "time example"]:
    """The start, time axis first, followed by space for the tokens to come."""
    tokens = torch.empty(time, len(start), dtype=torch.int64, device=start.device)
    tokens[: start.shape[1]] = start.T
    return tokens


def _loop(cdf: Tensor, tokens: Tensor, uniform: Tensor, states: int, plan: Plan) -> Tensor:
    """Fill the planned rows of `tokens` (time, example) one by one; the result has the example axis first."""
    if uniform.device.type == "cpu":
        return torch.from_numpy(_numpy_loop(cdf.numpy(), tokens.numpy(), uniform.numpy(), states, plan))
    return _torch_loop(cdf, tokens, uniform, states, plan)


def _torch_loop(cdf: Tensor, tokens: Tensor, uniform: Tensor, states: int, plan: Plan) -> Tensor:
    several = cdf.shape[0] > 1
    offset = torch.arange(tokens.shape[1], device=uniform.device) * (cdf.shape[1] if several else 0)
    rows = cdf.flatten(0, -2)
    for level, (position, parents) in zip(uniform, plan):
        row = offset
        for power, parent in enumerate(parents):
            row = torch.add(row, tokens[parent], alpha=states**power)
        torch.sum(level.unsqueeze(-1) >= rows[row], -1, out=tokens[position])
    return tokens.T.contiguous()


def _numpy_loop(cdf: np.ndarray, tokens: np.ndarray, uniform: np.ndarray, states: int, plan: Plan) -> np.ndarray:
    """The same loop on a CPU, where NumPy's small operations on preallocated buffers cost a third of torch's."""
    examples = tokens.shape[1]
    several = cdf.shape[0] > 1
    offset = np.arange(examples) * (cdf.shape[1] if several else 0)
    rows = cdf.reshape(-1, states - 1)
    # One look-up per threshold beats gathering whole rows while there are few states.
    tables = [np.ascontiguousarray(rows[:, j]) for j in range(states - 1)] if states <= 8 else []
    row, part = np.empty(examples, dtype=np.int64), np.empty(examples, dtype=np.int64)
    above, count = np.empty(examples, dtype=bool), np.empty(examples, dtype=np.uint8)
    for level, (position, parents) in zip(uniform, plan):
        np.add(offset, tokens[parents[0]] if parents else 0, out=row)
        for power, parent in enumerate(parents[1:], start=1):
            np.multiply(tokens[parent], states**power, out=part)
            np.add(row, part, out=row)
        if not tables:
            tokens[position] = (level[:, None] >= rows[row]).sum(-1)
            continue
        count[:] = 0
        for table in tables:
            np.greater_equal(level, table.take(row), out=above)
            np.add(count, above.view(np.uint8), out=count)
        tokens[position] = count
    return np.ascontiguousarray(tokens.T)


def _scan_pays(contexts: int, states: int, examples: int, steps: int, device: torch.device) -> bool:
    """Whether building one map per step, for all steps at once, is cheaper than a few small operations per step.

    Times in microseconds, measured on one CPU core and on a GPU that launches an operation in about 5.
    """
    cells = contexts * (states + 1) * examples
    if steps < 8 or cells * steps > 2**29:
        return False
    if device.type != "cpu":
        return cells * 5e-5 < 15.0 * states
    return cells * 0.004 < 5.0 + 3.0 * (states - 1) + 0.0025 * states * examples


def _scan(cdf: Tensor, start: Tensor, uniform: Tensor, states: int) -> Tensor:
    """Contexts after each step by composing maps pairwise; the token is the context's last digit."""
    contexts = cdf.shape[1]
    tokens = (uniform[..., None, None] >= cdf).sum(-1)
    code = torch.arange(contexts, device=uniform.device)
    maps = code * states % contexts + tokens
    powers = states ** torch.arange(start.shape[1] - 1, -1, -1, device=start.device)
    visited = _compose(maps, (start * powers).sum(-1))
    return torch.cat([start, (visited % states).T], 1)


def _compose(maps: Int[Tensor, "time example context"], first: Int[Tensor, "example"]) -> Int[Tensor, "time example"]:
    steps = len(maps)
    if steps == 1:
        return maps[0].gather(-1, first.unsqueeze(-1)).T
    even = steps - steps % 2
    later = _compose(maps[1:even:2].gather(-1, maps[0:even:2]), first)
    before = torch.cat([first.unsqueeze(0), later])[: (steps + 1) // 2]
    visited = torch.empty(maps.shape[:2], dtype=maps.dtype, device=maps.device)
    visited[1:even:2] = later
    visited[0::2] = maps[0::2].gather(-1, before.unsqueeze(-1)).squeeze(-1)
    return visited
