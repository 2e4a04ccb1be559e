"""Linear state-space models: a diagonal recurrence, fixed or selective, behind a short convolution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.scan import linear_recurrence
from sandlab.models._parts.sequence import SequenceConfig, SequenceLayer, SequenceModel, State
from sandlab.models._parts.transformer_layer import MLPBlock
from sandlab.models.base import configured
from sandlab.models.layers import HookPoint, Linear, RMSNorm, align
from sandlab.registry import register

__all__ = ["MixedLayer", "ShortConvolution", "StateSpace", "StateSpaceConfig", "StateSpaceMixer"]


@dataclass(frozen=True, kw_only=True)
class StateSpaceConfig(SequenceConfig):
    """Options of a residual stack of state-space layers, besides those of every sequence model.

    width           coordinates of the residual stream
    state_width     states per channel
    expand          a layer has expand · width channels
    selective       gates, writing and reading depend on the input; False: they are fixed
    signed          gates lie in [−1, 1] instead of [0, 1]: a state can change its sign, as parity needs
    convolution     reach of the short causal convolution before the recurrence (1: none)
    gated           the output is multiplied by silu of a second branch
    activation      after the convolution; "identity" leaves a linear system
    learned_start   train the state before the first step (else it is zero)
    mlp             activation of a feed-forward block after each mixer, or "none"; mlp_width defaults to 4 · width
    """

    state_width: int = 8
    expand: int = 1
    selective: bool = True
    signed: bool = False
    convolution: int = 4
    gated: bool = True
    activation: str = "silu"
    learned_start: bool = False
    mlp: str = "none"
    mlp_width: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_integers("state_width", "expand", "convolution", "mlp_width")
        choice("activation", self.activation, ACTIVATIONS)
        choice("mlp", self.mlp, (*ACTIVATIONS, "none"))
        fits = self.input_width == self.width
        require(fits, "width", self.width, f"{self.vocab} (vocab) with one-hot tokens", "or learn the embedding")


class ShortConvolution(nn.Module):
    """y_t = Σ_{j<reach} w_j ⊙ x_{t−j} + b, channel by channel."""

    def __init__(self, channels: int, reach: int, *, bias: bool) -> None:
        super().__init__()
        self.reach = reach
        self.weight = nn.Parameter(torch.randn(reach, channels) / reach**0.5)
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def forward(self, x: Tensor, before: Tensor | None = None) -> Float[Tensor, "*lead time channel"]:
        """`before` holds the reach − 1 inputs that came earlier (default: zeros)."""
        time = x.shape[-2]
        longer = F.pad(x, (0, 0, self.reach - 1, 0)) if before is None else torch.cat([before, x], -2)
        y = torch.zeros_like(x) if self.bias is None else align(self.bias, x, 1).expand_as(x)
        for j in range(self.reach):
            first = self.reach - 1 - j
            y = torch.addcmul(y, longer[..., first : first + time, :], align(self.weight[..., j, :], x, 1))
        return y


class StateSpaceMixer(SequenceLayer):
    """h_t[e, n] = a_t[e, n] h_{t−1}[e, n] + B_t[n] u_t[e],   y_t[e] = Σ_n C_t[n] h_t[e, n] + D[e] u_t[e].

    u = φ(convolution(W x)) has expand · width channels e with state_width states n each. Gate: a = σ(α[e, n] + s_t[e]),
    or 2σ(·) − 1 when signed. Selective: s = W_s u, B = W_B u, C = W_C u; fixed: s = 0, B and C are parameters [e, n].
    The output is W' (y ⊙ silu(W'' x)) when gated, else W' y.

    Activations: `in_proj`, `convolution`, `gates` and `hidden` (…, time, channel, state), `read`, `out_proj`.
    """

    def __init__(self, config: StateSpaceConfig) -> None:
        super().__init__()
        channels, states = config.expand * config.width, config.state_width
        self.selective, self.signed, self.activation = config.selective, config.signed, config.activation
        std = config.init_std
        self.in_proj = Linear(config.width, channels, bias=config.bias, std=std)
        reach = config.convolution
        self.convolution = ShortConvolution(channels, reach, bias=config.bias) if reach > 1 else None
        kept = 0.5 + 0.49 * torch.rand(channels, states)
        if config.signed:
            kept = kept * torch.randint(0, 2, kept.shape).mul(2).sub(1)
        self.gate_bias = nn.Parameter(((kept + 1) / 2 if config.signed else kept).logit())
        if config.selective:
            self.shift = Linear(channels, channels, bias=False, std=std)
            self.write = Linear(channels, states, bias=False, std=std)
            self.show = Linear(channels, states, bias=False, std=std)
        else:
            # A fixed recurrence fed with noise of variance 1 starts with states of variance 1.
            self.written = nn.Parameter((1 - kept.square()).sqrt())
            self.shown = nn.Parameter(torch.randn(channels, states) / states**0.5)
        self.skip = nn.Parameter(torch.ones(channels))
        self.start = nn.Parameter(torch.zeros(channels, states)) if config.learned_start else None
        self.gate = Linear(config.width, channels, bias=config.bias, std=std) if config.gated else None
        self.gates, self.hidden, self.read = HookPoint(), HookPoint(), HookPoint()
        self.out_proj = Linear(channels, config.width, bias=config.bias, std=std)

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        inner = self.in_proj(x)
        u = inner if self.convolution is None else self.convolution(inner, None if state is None else state[1])
        u = ACTIVATIONS[self.activation](u)
        gates, drive = self._gates_and_drive(u)
        hidden = self.hidden(self._run(gates, drive, None if state is None else state[0]))
        shown = self.show(u).unsqueeze(-2) if self.selective else align(self.shown, hidden, 2)
        y = self.read((hidden * shown).sum(-1) + u * align(self.skip, u, 1))
        if self.gate is not None:
            y = y * F.silu(self.gate(x))
        return self.out_proj(y), (hidden[..., -1, :, :], self._tail(inner, state))

    def _gates_and_drive(self, u: Tensor) -> tuple[Tensor, Tensor]:
        wide = u.unsqueeze(-1)
        level = align(self.gate_bias, wide, 2)
        level = level + self.shift(u).unsqueeze(-1) if self.selective else level.expand(*u.shape, level.shape[-1])
        gates = level.sigmoid()
        gates = self.gates(2 * gates - 1 if self.signed else gates)
        return gates, wide * (self.write(u).unsqueeze(-2) if self.selective else align(self.written, wide, 2))

    def _run(self, gates: Tensor, drive: Tensor, before: Tensor | None) -> Tensor:
        if before is None and self.start is not None:
            before = align(self.start, gates[..., 0, :, :], 2)
        if before is not None:
            first = drive[..., :1, :, :] + gates[..., :1, :, :] * before.unsqueeze(-3)
            drive = torch.cat([first, drive[..., 1:, :, :]], -3)
        return linear_recurrence(gates.flatten(-2), drive.flatten(-2)).unflatten(-1, gates.shape[-2:])

    def _tail(self, inner: Tensor, state: State | None) -> Tensor:
        """The last inputs of the convolution, which the next piece of the sequence needs."""
        reach = 0 if self.convolution is None else self.convolution.reach - 1
        longer = F.pad(inner, (0, 0, reach, 0)) if state is None else torch.cat([state[1], inner], -2)
        return longer[..., longer.shape[-2] - reach :, :]


class MixedLayer(SequenceLayer):
    """x ← x + mixer(norm(x)), then perhaps x ← x + mlp(norm(x)); the mixer is a recurrence or attention."""

    def __init__(
        self,
        config: StateSpaceConfig,
        *,
        recurrence: SequenceLayer | None = None,
        attention: SequenceLayer | None = None,
    ) -> None:
        super().__init__()
        self.mixer_norm = RMSNorm(config.width)
        self.recurrence, self.attention = recurrence, attention
        self.resid_mid = HookPoint()
        self.mlp: MLPBlock | None = None
        if config.mlp != "none":
            self.mlp_norm = RMSNorm(config.width)
            hidden = config.mlp_width or 4 * config.width
            self.mlp = MLPBlock(config.width, hidden, config.mlp, bias=config.bias, std=config.init_std)
        self.resid_post = HookPoint()

    @property
    def mixer(self) -> SequenceLayer:
        mixer = self.recurrence or self.attention
        assert mixer is not None
        return mixer

    def forward(self, x: Float[Tensor, "*lead time width"]) -> Float[Tensor, "*lead time width"]:
        return self._rest(x + self.mixer(self.mixer_norm(x)))

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        added, state = self.mixer.advance(self.mixer_norm(x), state)
        return self._rest(x + added), state

    def _rest(self, x: Tensor) -> Tensor:
        x = self.resid_mid(x)
        return self.resid_post(x if self.mlp is None else x + self.mlp(self.mlp_norm(x)))


@register("models")
class StateSpace(SequenceModel):
    """Stack of diagonal linear recurrences h_t = a_t ⊙ h_{t−1} + B_t u_t, computed by a parallel scan.

    With `selective` gates, reading and writing depend on the token (as in Mamba), else they are fixed (as in S4D);
    `signed` lets gates be negative, without which no finite precision tracks parity. See `StateSpaceMixer` for the
    formulas.

    Activations: `embed`, `layers.i.recurrence.{in_proj,convolution,gates,hidden,read,out_proj}`, `layers.i.resid_mid`,
    `layers.i.mlp.hidden`, `layers.i.resid_post`, `ln_final`, `logits`. `advance` reads a sequence in pieces.

    Source: Gu, Goel and Ré 2022 (S4); Gu and Dao 2023 (Mamba); Grazzi et al. 2024 and Sarrof, Veitsman and Hahn 2024
    (sign of the gates).
    """

    config: StateSpaceConfig

    @configured(StateSpaceConfig)
    def __init__(self, config: StateSpaceConfig) -> None:
        layers = [MixedLayer(config, recurrence=StateSpaceMixer(config)) for _ in range(config.layers)]
        super().__init__(config, layers)

    def last_norm(self) -> nn.Module:
        return RMSNorm(self.config.width)
