"""A one-layer transformer on a binary Markov chain, reduced to three numbers: loss, gradient flow, basins.

The chain has P(1|0) = p, P(0|1) = q and stationary distribution π = (q, p)/(p + q). Training makes the matrices of the
transformer rank one (Makkuva et al. 2024, "Local to Global"); what is left are the size e of the embedding, the size w
of the feed-forward block and the bias b, and the predicted log-odds of a 1 are an affine function of the last token,

    logit(x) = f₀ + g·x,    g = e²(1 + 2w|w|).

With the best bias for each gain g the loss is a function ℓ(g) of one number, and the gradient flow of (e, w) conserves
an energy, which gives the basins of attraction in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from sandlab.errors import integer, number, require

__all__ = ["SADDLE", "SADDLE_ENERGY", "Basin", "Flow", "OneLayerMarkovTheory", "flow_energy", "flow_gain"]

SADDLE = -1 / math.sqrt(2)
"""The feed-forward size at which 1 + 2w|w| changes sign."""

SADDLE_ENERGY = -0.5 * (1 + math.log(2))
"""Energy of the degenerate saddle (e, w) = (0, −1/√2): the level line between the basins."""


def flow_gain(e: Tensor, w: Tensor) -> Tensor:
    """g = e²(1 + 2w|w|): the slope of the log-odds in the last token."""
    return e.square() * (1 + 2 * w * w.abs())


def flow_energy(e: Tensor, w: Tensor) -> Tensor:
    """E(e, w) = e² − w² − sgn(w) log|w|, constant along every trajectory; the line w = 0 is itself a trajectory.

    On each side of w = 0 the flow's slope is de/dw = (1 + 2w|w|)/(2e|w|), so 2e de = (1/|w| + 2 sgn(w)|w|) dw.
    """
    # The clamp keeps the energy finite on the line w = 0.
    return e.square() - w.square() - w.sign() * w.abs().clamp(min=1e-300).log()


@dataclass(frozen=True)
class Flow:
    """Trajectories of the gradient flow: their positions after each kept step, and where they ended.

    e, w      (kept step, start) positions
    gain      final g of each start; `reached` says which ones ended on the curve of global minima
    drift     largest change of the energy along each trajectory, relative to max(1, |energy|)
    """

    e: Tensor
    w: Tensor
    gain: Tensor
    reached: Bool[Tensor, "start"]
    drift: Float[Tensor, "start"]


@dataclass(frozen=True)
class Basin:
    """Starts (e, w) on a square grid that reach a global minimum.

    reached     (e, w) whether the flow from there does
    agreement   share of the starts, not within 0.05 of the border energy, for which `escapes` says the same
    """

    reached: Bool[Tensor, "e w"]
    agreement: float


@dataclass(frozen=True)
class OneLayerMarkovTheory:
    """Closed forms of the one-layer transformer on the binary chain with switching probabilities p and q.

    p, q   P(1|0) and P(0|1), strictly between 0 and 1. All tensors are float64 and may have any shape.
    """

    p: float
    q: float

    def __post_init__(self) -> None:
        for name, value in (("p", self.p), ("q", self.q)):
            require(0 < number(name, value) < 1, name, value, "strictly between 0 and 1")

    @property
    def ones(self) -> float:
        """π₁ = p/(p + q), the stationary probability of a 1."""
        return self.p / (self.p + self.q)

    @property
    def memory(self) -> float:
        """λ = 1 − p − q, the second eigenvalue of the kernel."""
        return 1 - self.p - self.q

    @property
    def marginal_loss(self) -> float:
        """H(π): the loss of predicting the stationary distribution whatever was seen."""
        return _entropy(self.ones)

    @property
    def optimal_loss(self) -> float:
        """π₀ h(p) + π₁ h(q): the entropy rate, which the true kernel reaches."""
        return (1 - self.ones) * _entropy(self.p) + self.ones * _entropy(self.q)

    @property
    def best_gain(self) -> float:
        """g* = log[(1 − p)(1 − q)/(pq)]: the gain at which the prediction is the true kernel."""
        return math.log((1 - self.p) * (1 - self.q) / (self.p * self.q))

    @property
    def switching_slope(self) -> float:
        """dℓ/dg at g = 0 with the best bias: π₀ π₁ (p + q − 1). Its sign decides what happens near the origin."""
        return -self.cross_moment(1)

    def cross_moment(self, lag: int) -> float:
        """E[(x_{n+1} − π₁) x_{n+1−lag}] = π₀ π₁ λ^lag: what predicting the marginal leaves unexplained."""
        integer("lag", lag, low=0)
        return (1 - self.ones) * self.ones * self.memory**lag

    def marginal_curvatures(self, width: int, tied: bool) -> list[float]:
        """Eigenvalues, smallest first, of the Hessian in embedding, readout and bias where the marginal is predicted.

        With c = π₀π₁(p + q − 1): 2c in every direction of the tied embedding, ±c in those of the untied one, π₀π₁ in
        the bias (Makkuva et al. 2024, "Attention with Markov").
        """
        c, variance = self.switching_slope, self.cross_moment(0)
        embedding = [2 * c] * width if tied else [c] * width + [-c] * width
        return sorted([*embedding, variance])

    def best_offset(self, gain: Tensor) -> Tensor:
        """f₀*(g) = log{[p − q + √((p − q)² + 4pq eᵍ)]/(2q eᵍ)}: the log-odds after a 0 that are best for gain g.

        Computed in logarithms, and without the difference of nearly equal numbers when p < q.
        """
        gain = gain.double()
        product = math.log(4 * self.p * self.q) + gain
        apart = torch.full_like(gain, math.log(abs(self.p - self.q)) if self.p != self.q else -math.inf)
        total = torch.logaddexp(apart, 0.5 * torch.logaddexp(2 * apart, product))
        top = total if self.p >= self.q else product - total
        return top - math.log(2 * self.q) - gain

    def loss(self, gain: Tensor, offset: Tensor | None = None) -> Tensor:
        """ℓ = π₁[q sp(f₁) + (1 − q) sp(−f₁)] + π₀[p sp(−f₀) + (1 − p) sp(f₀)], f₁ = f₀ + g, sp = softplus.

        Without an offset f₀ the best one is used: the reduced loss ℓ(g).
        """
        zero = self.best_offset(gain) if offset is None else offset
        one = zero + gain
        # sp(x) = −log σ(−x); torch's own softplus drops e^{−x} beyond x = 20.
        after_one = self.q * logsigmoid(-one) + (1 - self.q) * logsigmoid(one)
        after_zero = self.p * logsigmoid(zero) + (1 - self.p) * logsigmoid(-zero)
        return -self.ones * after_one - (1 - self.ones) * after_zero

    def slope(self, gain: Tensor) -> Tensor:
        """ℓ'(g) = π₁(σ(f₁) − (1 − q)); the bias is at its best, so it adds nothing."""
        return self.ones * (torch.sigmoid(self.best_offset(gain) + gain) - (1 - self.q))

    def velocity(self, e: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """ė = −ℓ'(g)·2e(1 + 2w|w|),  ẇ = −ℓ'(g)·4e²|w|: the gradient flow of ℓ(g(e, w))."""
        slope = self.slope(flow_gain(e, w))
        return -slope * 2 * e * (1 + 2 * w * w.abs()), -slope * 4 * e.square() * w.abs()

    def escapes(self, e: Tensor, w: Tensor) -> Bool[Tensor, "..."]:
        """Whether the flow from (e, w) ends on the curve of global minima, by the energy alone.

        p + q < 1: all starts with w > −1/√2; below it those above the saddle's energy.
        p + q > 1: all starts with w < −1/√2; for −1/√2 < w < 0 those above the saddle's energy; none with w ≥ 0.
        Starts with e = 0 never move.
        """
        above = flow_energy(e, w) > SADDLE_ENERGY
        if self.memory > 0:
            return (e != 0) & ((w > SADDLE) | above)
        return (e != 0) & ((w < SADDLE) | ((w < 0) & above))

    def flow(
        self, e: Tensor, w: Tensor, *, steps: int = 8000, step: float = 0.25, keep: int = 0, tolerance: float = 1e-5
    ) -> Flow:
        """Follow the flow from each start by fourth-order Runge–Kutta until all have settled or `steps` are over.

        Each start has its own step length, `step` divided by a bound of the local Jacobian: none is unstable, and none
        slows down the others. `keep` > 0 stores every keep-th position.
        """
        integer("steps", steps, low=1)
        e, w = e.double().clone().flatten(), w.double().clone().flatten()
        energy = flow_energy(e, w)
        drift = torch.zeros_like(e)
        path = [(e.clone(), w.clone())]
        moving = torch.arange(len(e), device=e.device)
        for count in range(1, steps + 1):
            e[moving], w[moving] = self._runge_kutta(e[moving], w[moving], step)
            if keep and count % keep == 0:
                path.append((e.clone(), w.clone()))
            if count % 50 == 0 or count == steps:
                change = (flow_energy(e, w) - energy).abs() / energy.abs().clamp(min=1)
                drift = torch.where(w == 0, 0.0, torch.maximum(drift, change))
                moving = moving[~self._settled(e[moving], w[moving], tolerance)]
            if len(moving) == 0:
                break
        gain = flow_gain(e, w)
        reached = (gain - self.best_gain).abs() < 1e-2 * max(1.0, abs(self.best_gain))
        return Flow(torch.stack([at[0] for at in path]), torch.stack([at[1] for at in path]), gain, reached, drift)

    def basin(self, count: int, span: float, device: str | torch.device = "cpu") -> Basin:
        """Follow the flow from count × count starts over [−span, span]²."""
        line = torch.linspace(-span, span, count, dtype=torch.float64, device=device)
        e, w = (part.flatten() for part in torch.meshgrid(line, line, indexing="ij"))
        reached = self.flow(e, w).reached
        clear = (flow_energy(e, w) - SADDLE_ENERGY).abs() > 0.05
        agreement = (reached == self.escapes(e, w))[clear].double().mean()
        return Basin(reached.view(count, count), float(agreement))

    def _settled(self, e: Tensor, w: Tensor, tolerance: float) -> Tensor:
        """On the curve of minima, or on the line e = 0 on the side that attracts."""
        gain = flow_gain(e, w)
        attracting = (1 + 2 * w * w.abs()) * self.switching_slope > 0
        return ((gain - self.best_gain).abs() < tolerance) | ((e.abs() < tolerance) & attracting) | (e == 0)

    def _runge_kutta(self, e: Tensor, w: Tensor, step: float) -> tuple[Tensor, Tensor]:
        h = step / self._stiffness(e, w)
        e1, w1 = self.velocity(e, w)
        e2, w2 = self.velocity(e + h / 2 * e1, w + h / 2 * w1)
        e3, w3 = self.velocity(e + h / 2 * e2, w + h / 2 * w2)
        e4, w4 = self.velocity(e + h * e3, w + h * w3)
        return e + h / 6 * (e1 + 2 * e2 + 2 * e3 + e4), w + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4)

    def _stiffness(self, e: Tensor, w: Tensor) -> Tensor:
        """A bound of the Jacobian's norm: ℓ''|∇g|² + |ℓ'||∇²g| with ℓ'' ≤ 1/16 and |ℓ'| ≤ max(π₁q, π₁(1 − q))."""
        slope = self.ones * max(self.q, 1 - self.q)
        bend = 2 * (1 + 2 * w * w.abs()).abs() + 8 * (e * w).abs() + 4 * e.square()
        gradient = (2 * e * (1 + 2 * w * w.abs())).square() + (4 * e.square() * w).square()
        return gradient / 16 + slope * bend


def _entropy(probability: float) -> float:
    """h(p) = −p log p − (1 − p) log(1 − p)."""
    return -probability * math.log(probability) - (1 - probability) * math.log(1 - probability)
