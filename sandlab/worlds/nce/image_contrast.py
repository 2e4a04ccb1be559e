"""Images against Gaussian noise of the same mean and covariance: data and noise that are hard to tell apart."""

from __future__ import annotations

import functools
import gzip
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.nce._draws import standard_normal

__all__ = ["ImageContrast", "read_idx"]

_MNIST = ("train-images-idx3-ubyte", "train-images.idx3-ubyte")


def read_idx(path: str | Path) -> np.ndarray:
    """An array from an IDX file (the format of MNIST), gzipped or plain.

    Two zero bytes, a type byte (8: unsigned bytes), the number of axes, each axis as a big-endian 32-bit number, data.
    """
    path = Path(path)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise BadInput(f"{path.name} is not an IDX file of bytes: it must begin with 00 00 08, got {raw[:3].hex(' ')}")
    axes = raw[3]
    shape = struct.unpack(f">{axes}I", raw[4 : 4 + 4 * axes])
    body = raw[4 + 4 * axes :]
    if len(body) != math.prod(shape):
        raise BadInput(f"{path.name} declares {shape} bytes and holds {len(body)}: the file is cut or damaged")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


@register("worlds")
@dataclass(frozen=True)
class ImageContrast(World):
    """Images (class 1) and draws from the Gaussian with their mean and covariance (class 0), in equal parts.

    source  "digits": the 1797 handwritten 8×8 digits that come with scikit-learn; "mnist": a local copy of MNIST's
            training images in `folder` (train-images-idx3-ubyte, plain or .gz); "mixture": synthetic images from a
            mixture of `bumps` Gaussians in R^(size²), whose log-ratio, and so the oracle, is known exactly
    squeeze α: grey levels are dequantised by uniform noise, scaled into (α, 1 − α) and passed through the logit
    Source: Liu 2024 (thesis), section 4.1.6; noise and preprocessing after Rhodes, Xu & Gutmann 2020.
    """

    source: str = "digits"
    folder: str = ""
    size: int = 8
    bumps: int = 10
    spread: float = 0.3
    squeeze: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        choice("source", self.source, ("digits", "mnist", "mixture"))
        integer("size", self.size, low=2)
        integer("bumps", self.bumps, low=1)
        number("spread", self.spread, low=1e-3)
        number("squeeze", self.squeeze, low=1e-6, high=0.4)
        integer("seed", self.seed, low=0)
        if self.source == "mnist":
            self._mnist_file()

    @property
    def outputs(self) -> int:
        return 2

    @property
    def side(self) -> int:
        """Pixels per row of an image."""
        return {"digits": 8, "mnist": 28}.get(self.source, self.size)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        label = torch.rand(n, generator=rng, device=rng.device) < 0.5
        x = torch.where(label.unsqueeze(-1), self._draw_images(n, rng), self._draw_noise(n, rng))
        truth = {"log_ratio": self.log_ratio(x)} if self.source == "mixture" else {}
        images = x.to(torch.get_default_dtype()).view(n, 1, self.side, self.side)
        return Batch(images, label.long(), torch.ones_like(label), truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example class"]:
        ratio = self.log_ratio(batch.inputs.flatten(1))
        return torch.nn.functional.logsigmoid(torch.stack([-ratio, ratio], dim=-1))

    def log_ratio(self, x: Float[Tensor, "n pixel"]) -> Float[Tensor, " n"]:
        """log p(x) − log q(x) for the synthetic mixture; unknown for real images."""
        if self.source != "mixture":
            raise NotImplementedError(f"ImageContrast has no exact oracle for {self.source!r}: use source='mixture'")
        x = x.to(torch.float64)
        centres = self._centres().to(x.device)
        squares = torch.cdist(x, centres).square() / self.spread**2
        pixels = x.shape[-1]
        log_p = torch.logsumexp(-squares / 2, -1) - math.log(len(centres))
        log_p = log_p - pixels * math.log(self.spread * math.sqrt(2 * math.pi))
        mean, root = (part.to(x.device) for part in self._moments())
        white = torch.linalg.solve_triangular(root, (x - mean).mT, upper=False)
        log_q = -white.square().sum(0) / 2 - root.diagonal().log().sum() - pixels * math.log(2 * math.pi) / 2
        return log_p - log_q

    def _draw_images(self, n: int, rng: torch.Generator) -> Float[Tensor, "n pixel"]:
        if self.source == "mixture":
            centres = self._centres().to(rng.device)
            which = torch.randint(len(centres), (n,), generator=rng, device=rng.device)
            return centres[which] + self.spread * standard_normal(n, centres.shape[1], rng)
        levels, top = _grey_levels(self.source, self._path(), str(rng.device))
        pick = torch.randint(len(levels), (n,), generator=rng, device=rng.device)
        return _logits(levels[pick].double(), top, self.squeeze, rng)

    def _draw_noise(self, n: int, rng: torch.Generator) -> Float[Tensor, "n pixel"]:
        mean, root = (part.to(rng.device) for part in self._moments())
        return mean + standard_normal(n, len(mean), rng) @ root.mT

    def _centres(self) -> Float[Tensor, "bump pixel"]:
        """Smooth random images: low-frequency waves with unit pixel variance."""
        rng = torch.Generator().manual_seed(self.seed)
        grid = torch.arange(self.size, dtype=torch.float64) / self.size
        waves = torch.stack([torch.cos(math.pi * k * (grid + 0.5 / self.size)) for k in range(3)])
        mixing = torch.randn(self.bumps, 3, 3, generator=rng, dtype=torch.float64)
        images = torch.einsum("bij,ix,jy->bxy", mixing, waves, waves).flatten(1)
        return images / images.std()

    def _moments(self) -> tuple[Float[Tensor, " pixel"], Float[Tensor, "pixel pixel"]]:
        """Mean and lower Cholesky root of the covariance: exact for the mixture, fitted for images."""
        if self.source != "mixture":
            return _fitted(self.source, self._path(), self.squeeze)
        centres = self._centres()
        off = centres - centres.mean(0)
        covariance = off.mT @ off / len(centres) + self.spread**2 * torch.eye(centres.shape[1], dtype=torch.float64)
        return centres.mean(0), torch.linalg.cholesky(covariance)

    def _path(self) -> str:
        return str(self._mnist_file()) if self.source == "mnist" else ""

    def _mnist_file(self) -> Path:
        for name in _MNIST:
            for ending in ("", ".gz"):
                path = Path(self.folder or ".") / (name + ending)
                if path.is_file():
                    return path
        raise BadInput(
            f"folder {self.folder!r} has no {_MNIST[0]} (or .gz): download MNIST's training images there, "
            "or use source='digits'"
        )


@functools.lru_cache(maxsize=4)
def _grey_levels(source: str, path: str, device: str = "cpu") -> tuple[Int[Tensor, "image pixel"], int]:
    """Every image as bytes 0 … top − 1, kept on the device, and the number of levels."""
    if source == "mnist":
        images = read_idx(path)
        if images.ndim != 3 or images.shape[1:] != (28, 28):
            raise BadInput(f"{Path(path).name} must hold 28×28 images, got an array of shape {images.shape}")
        return torch.from_numpy(images.reshape(len(images), -1).copy()).to(device), 256
    from sklearn.datasets import load_digits

    return torch.from_numpy(load_digits().data.astype(np.uint8)).to(device), 17


@functools.lru_cache(maxsize=4)
def _fitted(source: str, path: str, squeeze: float) -> tuple[Tensor, Tensor]:
    levels, top = _grey_levels(source, path)
    values = _logits(levels.double(), top, squeeze, torch.Generator().manual_seed(0))
    covariance = torch.cov(values.mT) + 1e-6 * torch.eye(values.shape[1], dtype=torch.float64)
    return values.mean(0), torch.linalg.cholesky(covariance)


def _logits(levels: Tensor, top: int, squeeze: float, rng: torch.Generator) -> Tensor:
    """Dequantise, scale into (α, 1 − α), logit."""
    noise = torch.rand(levels.shape, generator=rng, device=levels.device, dtype=torch.float64)
    share = (levels + noise) / top
    return torch.logit(squeeze + (1 - 2 * squeeze) * share)
