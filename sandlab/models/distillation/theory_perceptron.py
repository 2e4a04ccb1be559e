"""The network of the theory: one hidden layer of ReLUs, a scalar output, and an initialisation whose output is zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import require
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, linear
from sandlab.models.mlp import MLP, MLPConfig
from sandlab.registry import register

__all__ = ["TheoryPerceptron", "TheoryPerceptronConfig", "perceptron", "torch_start"]


@dataclass(frozen=True)
class TheoryPerceptronConfig(Config):
    """Options of the theory's network.

    features     d, odd: the sign of a sum of d signs is never 0
    width        m, even: neurons come in pairs of opposite output weight
    order        k, even: biases lie on the grid −1 + 1/k, …, 1 − 1/k of step 1/k
    aligned      0: weights are random signs; ±1: those of the first `order` coordinates all have this sign
    """

    features: int
    width: int = 128
    order: int = 4
    aligned: int = 0

    def __post_init__(self) -> None:
        self.check_integers("features", "width", "order")
        require(self.features % 2 == 1, "features", self.features, "odd")
        require(self.width % 2 == 0, "width", self.width, "even")
        fits = self.order % 2 == 0 and self.order < self.features
        require(fits, "order", self.order, "even and below features")
        require(self.aligned in (-1, 0, 1), "aligned", self.aligned, "-1, 0 or 1")


@register("models")
class TheoryPerceptron(Model):
    """f(x) = Σ_i a_i σ(⟨w_i, x⟩ + b_i), σ = ReLU; logits have a time axis of 1 and one class.

    Start, for i ≤ m/2: w_i uniform signs, b_i uniform on the grid, a_i = ±1/m; neuron i + m/2 has the same w and b and
    the opposite a, so that f = 0.

    Activations: `drive` (before σ), `hidden`, `logits`.

    Source: Panigrahi et al. 2024, thesis section 4.2.6, with d odd.
    """

    carries_members = True
    config: TheoryPerceptronConfig

    @configured(TheoryPerceptronConfig)
    def __init__(self, config: TheoryPerceptronConfig) -> None:
        super().__init__(config)
        half, order = config.width // 2, config.order
        weight = torch.randint(2, (half, config.features)) * 2.0 - 1
        if config.aligned:
            weight[:, :order] = float(config.aligned)
        bias = torch.randint(1 - order, order, (half,)) / order
        output = (torch.randint(2, (half,)) * 2.0 - 1) / config.width
        self.weight = nn.Parameter(weight.repeat(2, 1))
        self.bias = nn.Parameter(bias.repeat(2))
        self.output = nn.Parameter(torch.cat([output, -output]).unsqueeze(0))
        self.drive, self.hidden, self.logits = HookPoint(), HookPoint(), HookPoint()

    def forward(self, inputs: Float[Tensor, "*lead features"]) -> Float[Tensor, "*lead 1 1"]:
        drive = self.drive(linear(inputs.to(self.dtype).unsqueeze(-2), self.weight, self.bias))
        return self.logits(linear(self.hidden(drive.relu()), self.output))


def perceptron(features: int, width: int, outputs: int = 2) -> MLPConfig:
    """The experiments' network: features → width ReLUs → logits, both with biases (start it with `torch_start`)."""
    return MLPConfig(features=features, hidden=(width,), outputs=outputs)


def torch_start(model: nn.Module) -> None:
    """torch's own start of linear maps: weights and biases uniform on ±1/√inputs."""
    require(isinstance(model, MLP), "model", type(model).__name__, "an MLP")
    with torch.no_grad():
        for part in model.modules():
            weight, bias = getattr(part, "weight", None), getattr(part, "bias", None)
            if isinstance(weight, nn.Parameter):
                reach = 1 / math.sqrt(weight.shape[-1])
                weight.uniform_(-reach, reach)
                if isinstance(bias, nn.Parameter):
                    bias.uniform_(-reach, reach)
