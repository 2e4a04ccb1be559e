"""What the decoding studies share: trained models, the verifiers trained on their errors, and how they are decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypedDict, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier, RandomVerifier, Verifier
from sandlab.decoding.verifiers.trained import ProbeNetwork, ProbeVerifier, last_features, train_probe
from sandlab.learning._engine.precision import computing
from sandlab.learning.experiment import Experiment, Runs
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.study import Lab
from sandlab.studies.verifier._exact import QUERIES as QUERIES
from sandlab.studies.verifier._exact import THESIS as THESIS
from sandlab.studies.verifier._exact import table as table
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.verifier.append_cases import AppendCases

GREY = "#b9bcc0"
Strings: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Decoding:
    """How a model is decoded: the distribution that is sampled from, and what a verifier does about it.

    candidates   above 0: that many candidates for each line, of which the verifier keeps the best (block best-of-n)
    quota        above 0: backtracking by `stride` tokens where the verifier's value is below `threshold`
    verifier     "exact", "random", or the name of a trained one
    misleading   programs only: the functions have names that contradict their bodies
    """

    top_p: float = 1.0
    temperature: float = 1.0
    candidates: int = 0
    quota: int = 0
    stride: int = 4
    threshold: float = 0.5
    verifier: str = "trained"
    redo: str = "argmax"
    check: str = "after"
    misleading: bool = False

    def decoder(self, separator: int | None = None, blocks: int | None = None) -> Decoder:
        """The decoder; a separator ends a line, and `blocks` lines end the text."""
        warp = (self.temperature, self.top_p)
        if self.candidates:
            return BlockBestOfN(*warp, candidates=self.candidates, separator=separator, blocks=blocks)
        if self.quota:
            return Backtracking(*warp, self.quota, self.stride, self.threshold, self.redo, self.check)
        return Sampling(*warp)

    @property
    def consulted(self) -> str:
        """The verifier that is consulted; none without candidates or quota."""
        return self.verifier if self.candidates or self.quota else ""


@dataclass(frozen=True)
class TrainedVerifier:
    """A probe of the model's activation `point` at the last token, and its accuracy on strings that were held out."""

    point: str
    weights: dict[str, Tensor]
    validation: float

    @property
    def network(self) -> ProbeNetwork:
        shapes = [tuple(value.shape) for name, value in self.weights.items() if name.endswith("weight")]
        network = ProbeNetwork(shapes[0][1], len(shapes), shapes[0][0])
        network.load_state_dict(self.weights)
        return network.requires_grad_(False)


@dataclass(frozen=True)
class ErrorSet:
    """Errors that a model made while it sampled, and verifiers trained on them.

    strings, labels   prefixes of its texts: the last token is an error (0), or all of it is correct (1)
    prefixes          prefixes that were not used to train anything, each right before an error
    prompts           how many prompts were completed to find these
    """

    strings: list[list[int]]
    labels: list[int]
    verifiers: dict[str, TrainedVerifier]
    prompts: int
    prefixes: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class Writer:
    """A trained model that completes prompts, and the errors it is known to make. On a GPU it computes in TF32.

    world   says which strings are correct, and which token ends a string
    limit   tokens of the longest string
    """

    model: Transformer
    world: Dyck | AppendCases
    limit: int
    seed: int
    device: str
    errors: ErrorSet = ErrorSet([], [], {}, 0)

    def complete(
        self, prompts: Strings, decoder: Decoder, *stream: str | int, verifier: str = "", trace: bool = False
    ) -> Generations:
        """Completions of the prompts with the random numbers of the seed and the named stream."""
        generator = self.generator()
        with computing("tf32", generator.device):
            return decoder.generate(
                generator,
                prompts,
                max_new=[self.limit - len(prompt) for prompt in prompts],
                verifier=self._verifier(verifier, generator) if verifier else None,
                eos=self.world.end_token,
                rng=rng(self.seed, *stream),
                trace=trace,
            )

    def features(self, strings: Strings, *points: str) -> dict[str, Float[Tensor, "string _width"]]:
        """Activations at the last token of each string."""
        generator = self.generator()
        with computing("tf32", generator.device):
            return last_features(generator, strings, points)

    def fit(
        self, features: Tensor, labels: list[int], point: str, layers: int = 1, steps: int = 800, hidden: int = 256
    ) -> TrainedVerifier:
        """A verifier trained on the features of labelled strings."""
        target, source = torch.tensor(labels, device=features.device), rng(self.seed, "probe")
        probe = train_probe(features, target, rng=source, layers=layers, steps=steps, hidden=hidden)
        return TrainedVerifier(point, dict(probe.network.state_dict()), probe.validation_accuracy)

    def generator(self) -> ModelGenerator:
        return ModelGenerator(self.model.to(self.device))

    def _verifier(self, name: str, generator: ModelGenerator) -> Verifier:
        if name == "exact":
            return LanguageVerifier(self.world)
        if name == "random":
            return RandomVerifier(self.seed)
        trained = self.errors.verifiers[name]
        return ProbeVerifier(generator, trained.point, trained.network.to(self.device))


@dataclass(frozen=True)
class DecodingSettings:
    """The language models of a study; subclasses say how much is decoded with each."""

    model: Experiment


Settings = TypeVar("Settings", bound=DecodingSettings)
Result = TypeVar("Result")


class Presets(TypedDict, Generic[Settings]):
    """The presets that several studies share."""

    quick: Settings
    full: Settings
    null: Settings


@dataclass(frozen=True)
class ModelJob(Generic[Settings]):
    """What is measured on the model of one seed, with one decoding where the measurement needs one."""

    settings: Settings
    seed: int
    device: str
    decoding: Decoding = Decoding()


@dataclass(frozen=True)
class Models(Generic[Settings]):
    """The trained models of all seeds: measurements are mapped over them, each given its model.

    Repetitions of one model share its weights, its verifier and its prefixes: only models are independent of each
    other, so measurements are means over repetitions, and the intervals of the findings are over models.
    """

    lab: Lab
    settings: Settings
    runs: Runs
    writers: list[Writer]

    @classmethod
    def train(
        cls,
        settings: Settings,
        lab: Lab,
        world: Dyck | AppendCases,
        limit: int,
        find_errors: Callable[[ModelJob[Settings], Writer], ErrorSet],
    ) -> Models[Settings]:
        """Train the models, then let each of them make the errors that verifiers learn from."""
        runs = lab.train(settings.model, label="language models", weights=True)
        models = [runs.model(settings.model.model, index) for index in range(len(runs))]
        writers = [
            Writer(model, world, limit, seed, lab.device)
            for seed, model in zip(runs.seeds, models)
            if isinstance(model, Transformer)
        ]
        errors = cls(lab, settings, runs, writers).measure(find_errors, "errors of the language models")
        return cls(lab, settings, runs, [replace(writer, errors=found) for writer, found in zip(writers, errors)])

    def measure(self, job: Callable[[ModelJob[Settings], Writer], Result], label: str) -> list[Result]:
        """One result per model."""
        return self.decode(job, [Decoding()], label)[0]

    def decode(
        self, job: Callable[[ModelJob[Settings], Writer], Result], decodings: Sequence[Decoding], label: str
    ) -> list[list[Result]]:
        """For each decoding, one result per model."""
        seeds, device = self.runs.seeds, self.lab.device
        jobs = [ModelJob(self.settings, seed, device, decoding) for decoding in decodings for seed in seeds]
        found = self.lab.map(job, jobs, given=self.writers * len(decodings), label=label)
        return [found[start : start + len(seeds)] for start in range(0, len(found), len(seeds))]


def untrained(experiment: Experiment) -> Experiment:
    """The same models with the weights that they start from."""
    return replace(experiment, training=replace(experiment.training, lr=0.0))


def spread(values: np.ndarray, digits: int = 3) -> str:
    """Mean ± standard error over models."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def published_mean(text: float | str) -> float:
    """The number before the ± of a published entry; not a number where there is none."""
    return text if isinstance(text, float) else float(text.split()[0]) if text else float("nan")


def bars(
    axis: Axes,
    names: Sequence[str],
    values: Sequence[np.ndarray],
    published: Sequence[float | str],
    ylabel: str = "distinct correct test cases / requested",
) -> None:
    """A bar for each decoding with a dot for each model, and a grey one for the published mean where there is one."""
    index, printed = np.arange(len(names)), [published_mean(each) for each in published]
    axis.bar(index - 0.2, [value.mean() for value in values], 0.38, label="here")
    axis.bar(index + 0.2, printed, 0.38, color=GREY, label="published")
    for spot, value in zip(index, values):
        axis.plot([spot - 0.2] * len(value), value, "k.", markersize=3)
    axis.set(xticks=index, ylabel=ylabel)
    axis.set_xticklabels(names, fontsize=8)
    # Room for the legend above the highest bar.
    axis.set_ylim(0, 1.2 * max([value.max() for value in values] + [each for each in printed if each == each]))
    axis.legend(loc="upper right", ncol=2)
