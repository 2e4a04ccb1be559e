"""Verifiers that are trained on a model's own activations: linear, deeper, or asked at the ends of blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.decoding.generators.base import Generator
from sandlab.decoding.generators.neural import CachedGenerator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, integer, require

__all__ = ["ProbeNetwork", "ProbeVerifier", "TrainedProbe", "last_features", "train_probe"]


class ProbeNetwork(nn.Module):
    """Features → P(the prefix can be completed): `layers` linear maps with ReLU between them, then softmax over two.

    layers = 1 is the linear verifier. Features are standardised with the training set's mean and deviation first, which
    leaves a linear probe linear.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, width: int, layers: int = 1, hidden: int = 256) -> None:
        super().__init__()
        integer("layers", layers, low=1)
        sizes = [width, *[hidden] * (layers - 1), 2]
        self.maps = nn.ModuleList(nn.Linear(before, after) for before, after in itertools.pairwise(sizes))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def forward(self, features: Float[Tensor, "row width"]) -> Float[Tensor, "row 2"]:
        x = (features - self.mean) / self.deviation
        for layer in self.maps[:-1]:
            x = F.relu(layer(x))
        return self.maps[-1](x)

    def score(self, features: Float[Tensor, "row width"]) -> Float[Tensor, "row"]:
        """P(correct)."""
        return self(features).softmax(-1)[:, 1]


@dataclass(frozen=True)
class TrainedProbe:
    """A probe and how well it does on the strings held out."""

    network: ProbeNetwork
    train_accuracy: float
    validation_accuracy: float
    count: int


def train_probe(
    features: Float[Tensor, "row width"],
    labels: Int[Tensor, "row"],
    *,
    rng: torch.Generator,
    layers: int = 1,
    hidden: int = 256,
    steps: int = 800,
    lr: float = 3e-2,
    weight_decay: float = 0.01,
    held_out: float = 0.1,
) -> TrainedProbe:
    """Fit a probe to labelled features (0 error, 1 correct): full-batch AdamW, the best validation weights are kept.

    Botta, Li et al. 2025 used 882 strings, 792 to train on and 90 to validate, and do not state the optimiser; a probe
    with several layers takes a tenth of the learning rate.
    """
    require(set(labels.unique().tolist()) == {0, 1}, "labels", sorted(set(labels.tolist())), "both 0 and 1")
    device = features.device
    order = torch.randperm(len(labels), generator=rng, device=rng.device).to(device)
    cut = max(1, round(held_out * len(labels)))
    test, fit = order[:cut], order[cut:]
    features = features.float()
    # The weights' first values are drawn from the given generator, whatever the device.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (1,), generator=rng, device=rng.device)))
        network = ProbeNetwork(features.shape[1], layers, hidden)
    network = network.to(device)
    network.mean.copy_(features[fit].mean(0))
    network.deviation.copy_(features[fit].std(0).clamp(min=1e-6))
    rate = lr if layers == 1 else lr / 10
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=weight_decay)
    best, kept = -1.0, network.state_dict()
    for step in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(network(features[fit]), labels[fit]).backward()
        optimizer.step()
        if step % 20 == 19 or step == steps - 1:
            right = _accuracy(network, features[test], labels[test])
            if right >= best:
                best, kept = right, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(kept)
    network.requires_grad_(False)
    return TrainedProbe(network, _accuracy(network, features[fit], labels[fit]), best, len(labels))


@torch.no_grad()
def _accuracy(network: ProbeNetwork, features: Tensor, labels: Tensor) -> float:
    return float((network(features).argmax(1) == labels).float().mean())


class ProbeVerifier(Verifier):
    """V(s) = the probe's P(correct) from the generator's activation `point` at the last token of s.

    The activation comes from the pass that gives the distribution of the next token, so that a prefix that is kept
    costs one evaluation of the network in all. Asked only at the ends of lines it is a block verifier.
    """

    def __init__(self, generator: Generator, point: str, network: ProbeNetwork) -> None:
        self.generator, self.point, self.network = generator, point, network
        if isinstance(generator, CachedGenerator):
            generator.watch(point)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        with torch.no_grad():
            features = self.generator.features(tokens, lengths, rows, self.point)
            return self.network.score(features.float()).double()


def last_features(
    generator: Generator, strings: Sequence[Sequence[int]], points: Sequence[str], batch: int | None = None
) -> dict[str, Float[Tensor, "string _width"]]:
    """The activations `points` at the last token of each string, `batch` strings at a time.

    A processor reads few at a time fastest, while all fits into its cache; a GPU many.
    """
    if not strings:
        raise BadInput("there are no strings to read activations of")
    if batch is None:
        batch = 32 if generator.device.type == "cpu" else 512
    found: dict[str, list[Tensor]] = {point: [] for point in points}
    for begin in range(0, len(strings), batch):
        part = [list(string) for string in strings[begin : begin + batch]]
        width = max(map(len, part))
        tokens = torch.tensor([row + [0] * (width - len(row)) for row in part], device=generator.device)
        lengths = torch.tensor([len(row) for row in part], device=generator.device)
        rows = torch.arange(len(part), device=generator.device)
        if isinstance(generator, CachedGenerator):
            for point in points:
                generator.watch(point)
        generator.start(len(part), width)
        for point in points:
            found[point].append(generator.features(tokens, lengths, rows, point))
    return {point: torch.cat(values) for point, values in found.items()}
