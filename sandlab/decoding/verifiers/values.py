"""A value function for a language model: how likely is it that what it has written so far will end well?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.quality import VerifierQuality, verifier_quality
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.trained import ProbeNetwork, ProbeVerifier, last_features
from sandlab.errors import BadInput, integer, number

__all__ = ["Rollouts", "TrainedValue", "ValueFunction", "collect_rollouts", "train_value"]

Outcome = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Rollouts:
    """Prefixes of strings that a generator wrote, each with whether its string ended well (1) or not (0)."""

    prefixes: list[list[int]]
    labels: Int[Tensor, "prefix"]

    @property
    def success(self) -> float:
        return float(self.labels.double().mean())


@dataclass(frozen=True)
class TrainedValue:
    """V(s) as a network on activations, and its quality on rollouts that it has not seen: calibration and ROC."""

    network: ProbeNetwork
    point: str
    quality: VerifierQuality
    rollouts: int

    @property
    def calibration_error(self) -> float:
        """Σ_bins share·|mean value − share that ended well|."""
        gaps = abs(self.quality.predicted - self.quality.observed)
        return float((gaps * self.quality.counts).sum() / self.quality.counts.sum())


class ValueFunction(ProbeVerifier):
    """V(s) ≈ P(success | s) read off the network's own activations; complete strings are checked exactly.

    An outcome that can be checked keeps the law of the walk's leaves right whatever V is inside the tree.

    outcome   (tokens, lengths) → 1 or 0 for complete strings, or another `Verifier` whose outcome is asked
    least     values are at least this: what looks hopeless is not closed for good
    """

    def __init__(
        self,
        generator: Generator,
        point: str,
        network: ProbeNetwork,
        outcome: Outcome | Verifier,
        *,
        least: float = 1e-3,
    ) -> None:
        super().__init__(generator, point, network)
        self._outcome, self.least = outcome, number("least", least, low=0.0, high=1.0)

    def start(self, strings: int, capacity: int) -> None:
        if isinstance(self._outcome, Verifier):
            self._outcome.start(strings, capacity)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return super().value(tokens, lengths, rows).clamp(min=self.least)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        if isinstance(self._outcome, Verifier):
            return self._outcome.outcome(tokens, lengths, rows)
        return self._outcome(tokens, lengths).to(torch.float64)


def collect_rollouts(
    generator: Generator,
    prompts: Sequence[Sequence[int]],
    outcome: Outcome | Verifier,
    *,
    max_new: int | Sequence[int],
    eos: int | Sequence[int] | None,
    rng: torch.Generator,
    cuts: int = 6,
    decoder: Decoder | None = None,
) -> Rollouts:
    """Let the generator complete the prompts, judge what it wrote, and cut each string at `cuts` random places.

    A prefix s labelled by the outcome of a string sampled through it has E[label | s] = P(success | s).
    """
    integer("cuts", cuts, low=1)
    sampler = decoder or Sampling()
    done = sampler.generate(generator, prompts, max_new=max_new, eos=eos, rng=rng)
    good = _judged(done, outcome)
    prefixes, labels = [], []
    for row, prompt in enumerate(prompts):
        string = done.string(row)
        # The last place but one: a complete string has its outcome and needs no value.
        room = max(len(string) - len(prompt), 1)
        places = torch.randint(0, room, (cuts,), generator=rng, device=rng.device) + len(prompt)
        for place in sorted(set(places.tolist())):
            prefixes.append(string[:place])
            labels.append(int(good[row]))
    return Rollouts(prefixes, torch.tensor(labels))


def _judged(done: Generations, outcome: Outcome | Verifier) -> list[bool]:
    rows = torch.arange(len(done), device=done.tokens.device)
    if isinstance(outcome, Verifier):
        outcome.start(len(done), done.tokens.shape[1])
        return (outcome.outcome(done.tokens, done.lengths, rows) > 0).tolist()
    return (outcome(done.tokens, done.lengths) > 0).tolist()


def train_value(
    generator: Generator,
    rollouts: Rollouts,
    point: str,
    *,
    rng: torch.Generator,
    layers: int = 2,
    hidden: int = 64,
    steps: int = 300,
    lr: float = 3e-3,
    weight_decay: float = 0.05,
    held_out: float = 0.4,
) -> TrainedValue:
    """Fit V(s) to the outcomes of rollouts by cross-entropy on the activation `point` at the last token of s.

    Cross-entropy is least for the conditional probability itself, so the value is calibrated where it fits. Of the
    strings held out, one half chooses the weights (those with the least loss on it), the other measures the quality.
    """
    labels = rollouts.labels.to(generator.device)
    if set(labels.unique().tolist()) != {0, 1}:
        raise BadInput(
            f"all {len(labels)} rollouts ended {'well' if bool(labels[0]) else 'badly'}: a value needs both kinds"
        )
    features = last_features(generator, rollouts.prefixes, [point])[point].float()
    cut = round(held_out * len(labels))
    # Prefixes of one string stand together: strings are held out whole, but for one at each border.
    test, choose, fit = slice(0, cut // 2), slice(cut // 2, cut), slice(cut, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (1,), generator=rng, device=rng.device)))
        network = ProbeNetwork(features.shape[1], layers, hidden).to(features.device)
    network.mean.copy_(features[fit].mean(0))
    network.deviation.copy_(features[fit].std(0).clamp(min=1e-6))
    _descend(network, features[fit], labels[fit], features[choose], labels[choose], steps, lr, weight_decay)
    scores = network.score(features[test]).cpu().numpy()
    quality = verifier_quality(scores, labels[test].cpu().numpy())
    return TrainedValue(network, point, quality, len(labels))


def _descend(
    network: ProbeNetwork,
    features: Float[Tensor, "row width"],
    labels: Int[Tensor, "row"],
    held: Float[Tensor, "held width"],
    truth: Int[Tensor, "held"],
    steps: int,
    lr: float,
    weight_decay: float,
) -> None:
    """Full-batch AdamW; the weights with the least loss on held-out prefixes stay."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=weight_decay)
    least, kept = float("inf"), network.state_dict()
    for step in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(network(features), labels).backward()
        optimizer.step()
        if step % 10 == 9:
            with torch.no_grad():
                loss = float(F.cross_entropy(network(held), truth))
            if loss < least:
                least, kept = loss, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(kept)
    network.requires_grad_(False)
