"""A network for log p(x)/q(x) of images: quadratic form of features, features by a ResNet-18 or a small MLP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint
from sandlab.registry import register

__all__ = ["DensityRatio", "DensityRatioConfig", "ResNet18"]


@dataclass(frozen=True)
class DensityRatioConfig(Config):
    """Options of the density-ratio network.

    size, channels  images are (channels, size, size)
    body            "resnet18" or "mlp" (two layers)
    features        length of f(x)
    width           channels of the ResNet's first stage (64 in He et al. 2016), or the MLP's hidden width
    floor           ε of W = LLᵀ + εI
    """

    size: int = 28
    channels: int = 1
    body: str = "resnet18"
    features: int = 64
    width: int = 64
    floor: float = 1e-3

    def __post_init__(self) -> None:
        self.check_integers("channels", "features")
        self.check_integers("size", "width", low=4)
        self.check_numbers("floor", low=0.0)
        choice("body", self.body, ("resnet18", "mlp"))
        if self.body == "resnet18":
            require(self.width % 4 == 0, "width", self.width, "a multiple of 4", "channels are normalised in 4 groups")


class _Convolution(nn.Conv2d):
    """A convolution as one product of patches and weights: with a member axis it stays one batched product.

    The library's convolution turns a member axis into groups, for which there are no fast kernels on a GPU.
    """

    def forward(self, x: Tensor) -> Tensor:
        size, stride, edge = self.kernel_size[0], self.stride[0], self.kernel_size[0] // 2
        padded = nn.functional.pad(x, (edge, edge, edge, edge))
        windows = padded.unfold(2, size, stride).unfold(3, size, stride)
        patches = windows.movedim(1, 3).flatten(3)
        product = patches.flatten(0, -2) @ self.weight.flatten(1).mT  # two axes: more would repeat the weights
        return product.unflatten(0, patches.shape[:-1]).movedim(-1, 1)


class _Block(nn.Module):
    """x + conv(norm(relu(conv(x)))): a basic residual block; group norms treat each image separately.

    Batch normalisation would make log p(x)/q(x) of one image depend on the others in its batch.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _Convolution(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(4, outputs)
        self.second = _Convolution(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(4, outputs)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                _Convolution(inputs, outputs, 1, stride=stride, bias=False), nn.GroupNorm(4, outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.skip(x) + self.second_norm(self.second(inner)))


class ResNet18(nn.Module):
    """Eight residual blocks of two convolutions in four stages, a 3×3 stem for small images (He et al. 2016)."""

    def __init__(self, channels: int, features: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            _Convolution(channels, width, 3, padding=1, bias=False), nn.GroupNorm(4, width), nn.ReLU()
        )
        blocks: list[nn.Module] = []
        inputs = width
        for stage in range(4):
            outputs = width * 2**stage
            blocks += [_Block(inputs, outputs, 1 if stage == 0 else 2), _Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, features)

    def forward(self, images: Float[Tensor, "batch channel row column"]) -> Float[Tensor, "batch features"]:
        return self.head(self.blocks(self.stem(images)).mean((-2, -1)))


@register("models")
class DensityRatio(Model):
    """log p(x)/q(x) ≈ g(x) = −f(x)ᵀWf(x) − bᵀf(x) − c, with W = LLᵀ + εI positive definite and f a network.

    Logits of the classes [noise, data] are [0, g]: softmax cross-entropy on them is the NCE loss, and any world of
    data against noise trains it. Inputs are images (batch, channels, size, size) or flat vectors of that length.
    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.6, after Rhodes, Xu & Gutmann 2020.
    """

    config: DensityRatioConfig

    @configured(DensityRatioConfig)
    def __init__(self, config: DensityRatioConfig) -> None:
        super().__init__(config)
        pixels = config.channels * config.size**2
        self.body: nn.Module
        if config.body == "resnet18":
            self.body = ResNet18(config.channels, config.features, config.width)
        else:
            self.body = nn.Sequential(
                nn.Flatten(), nn.Linear(pixels, config.width), nn.ReLU(), nn.Linear(config.width, config.features)
            )
        scale = 0.1 / math.sqrt(config.features)
        self.root = nn.Parameter(scale * torch.randn(config.features, config.features))
        self.slope = nn.Parameter(torch.zeros(config.features))
        self.level = nn.Parameter(torch.zeros(()))
        self.ratio = HookPoint()

    def quadratic(self) -> Float[Tensor, "features features"]:
        """W = LLᵀ + εI."""
        identity = torch.eye(self.config.features, dtype=self.root.dtype, device=self.root.device)
        return self.root @ self.root.mT + self.config.floor * identity

    def log_ratio(self, images: Float[Tensor, "batch *pixels"]) -> Float[Tensor, " batch"]:
        """g(x)."""
        config = self.config
        features = self.body(images.reshape(-1, config.channels, config.size, config.size))
        squares = (features @ self.quadratic() * features).sum(-1)
        return self.ratio(-squares - features @ self.slope - self.level)

    def forward(self, inputs: Float[Tensor, "batch *pixels"]) -> Float[Tensor, "batch two"]:
        ratio = self.log_ratio(inputs)
        return torch.stack([torch.zeros_like(ratio), ratio], dim=-1)
