"""Language models of small programs, their errors, and the test cases of `append` that they write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch

from sandlab.decoding.decoders.sampling import Sampling
from sandlab.learning.experiment import Experiment, Training
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.studies.claims import NotMeasured
from sandlab.studies.study import Lab, Row
from sandlab.studies.verifier._decoding_runs import (
    Decoding,
    DecodingSettings,
    ErrorSet,
    ModelJob,
    Models,
    Presets,
    Writer,
    spread,
    untrained,
)
from sandlab.studies.verifier.codegen._published import published
from sandlab.worlds.base import Batch, World
from sandlab.worlds.verifier.append_cases import OOD_NAMES, AppendCases
from sandlab.worlds.verifier.append_checking import count_distinct
from sandlab.worlds.verifier.append_prefixes import label_prefixes

# Names in the strings that verifiers are trained on; the names of the tests are others.
TRAINING_NAMES = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")
DEPTHS = (1, 2, 4, 8)  # linear maps of a verifier
MARGIN = 0.02  # smaller differences of accuracy are not told apart
PLAIN = Decoding(top_p=0.95, threshold=0.1)
MAIN = replace(PLAIN, quota=4)
GREEDY = replace(PLAIN, top_p=0.0)
WIDE = replace(MAIN, top_p=1.0)
HOT = replace(WIDE, temperature=1.2)
BOLD = replace(MAIN, threshold=0.5)
EXACT = replace(MAIN, verifier="exact")
RANDOM = replace(MAIN, verifier="random")
BLOCKS = [replace(PLAIN, candidates=number, verifier="lines") for number in (2, 4, 8)]


def alone(decoding: Decoding) -> Decoding:
    """The same distribution without a verifier."""
    return replace(PLAIN, top_p=decoding.top_p, temperature=decoding.temperature)


@dataclass(frozen=True)
class Documents(World):
    """Documents without the padding that no document of a batch needs.

    On a GPU, where a recorded step needs batches of one size, the padding stays.
    """

    cases: AppendCases

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = self.cases.sample(n, rng=rng)
        longest = int(batch.mask.sum(1).max()) if rng.device.type == "cpu" else batch.mask.shape[1]
        return Batch(batch.inputs[:, :longest], batch.targets[:, :longest], batch.mask[:, :longest], batch.truth)


def experiment(
    world: AppendCases, *, layers: int, width: int, mlp_width: int, seeds: int, training: Training
) -> Experiment:
    """Scores decrease with the distance (ALiBi): with learned or rotary positions it takes several times as long to
    learn to copy a list."""
    model = TransformerConfig(
        vocab=world.vocab, length=world.length, layers=layers, heads=4, width=width, mlp_width=mlp_width,
        positions="alibi",
    )  # fmt: skip
    return Experiment(Documents(world), model, training, seeds)


QUICK_WORLD = AppendCases(
    cases=4, longest=2, functions=("append", "prepend", "pop", "max"), favour=0.7, examples=1, meaningful=0.9
)
TRAINING = Training(
    steps=2400, batch_size=8, lr=4e-3, weight_decay=0.1, schedule="linear", warmup=100, clip=1.0, ema=0.99, evals=1,
    eval_examples=128, precision="tf32",
)  # fmt: skip


@dataclass(frozen=True)
class Settings(DecodingSettings):
    """The language models, and how much each of them writes.

    names         random function names, and `misleading` ones, for each of which
    completions   texts are written, `repetitions` times
    searched      texts in which errors are looked for, to train verifiers of `hidden` units on
    nuclei, …     the grid of distributions of verifier/codegen-settings
    """

    names: int = 5
    misleading: tuple[str, ...] = ("pop", "max")
    completions: int = 10
    repetitions: int = 2
    searched: int = 1000
    probe_steps: int = 200
    hidden: int = 64
    nuclei: tuple[float, ...] = (0.8, 0.95, 1.0)
    temperatures: tuple[float, ...] = (0.2, 0.6, 1.0, 1.2)

    @property
    def world(self) -> AppendCases:
        assert isinstance(self.model.world, Documents)
        return self.model.world.cases


QUICK = Settings(experiment(QUICK_WORLD, layers=2, width=64, mlp_width=128, seeds=3, training=TRAINING))
FULL = Settings(
    experiment(
        AppendCases(favour=0.7), layers=4, width=256, mlp_width=1024, seeds=2,
        training=replace(TRAINING, steps=3000, batch_size=32, lr=1e-3, ema=0.995),
    ),
    names=10, misleading=OOD_NAMES, repetitions=5, searched=2100, probe_steps=400, hidden=256,
    nuclei=(0.7, 0.8, 0.9, 0.95, 1.0), temperatures=(0.2, 0.4, 0.6, 0.8, 1.0, 1.2),
)  # fmt: skip
PRESETS = Presets(quick=QUICK, full=FULL, null=replace(QUICK, model=untrained(QUICK.model)))
Job: TypeAlias = ModelJob[Settings]


def find_errors(job: Job, writer: Writer) -> ErrorSet:
    """Verifiers of tokens and of lines, trained on samples at temperature 1.

    A verifier of tokens reads the activation of one layer with one linear map ("trained": the last layer; "layer 0",
    …), or the last layer's with several ("depth 2", …). A verifier of lines ("lines") chooses among candidates.
    """
    settings, world = job.settings, job.settings.world
    each = -(-settings.searched // len(TRAINING_NAMES))
    done = writer.complete(prompts(world, TRAINING_NAMES, job.seed) * each, Sampling(), "errors")
    documents = [(done.string(row), int(done.starts[row])) for row in range(len(done))]
    tokens, lines = label_prefixes(world, documents, rng=rng(job.seed, "prefixes"))
    names, size = layer_names(writer), {"steps": settings.probe_steps, "hidden": settings.hidden}
    points = [f"layers.{layer}.resid_post" for layer in range(len(names))]
    features, last = writer.features(tokens.strings, *points), points[-1]
    found = {name: writer.fit(features[point], tokens.labels, point, **size) for name, point in zip(names, points)}
    for depth in DEPTHS[1:]:
        found[f"depth {depth}"] = writer.fit(features[last], tokens.labels, last, layers=depth, **size)
    found["lines"] = writer.fit(writer.features(lines.strings, last)[last], lines.labels, last, **size)
    return ErrorSet(tokens.strings, tokens.labels, found, len(done))


def layer_names(writer: Writer) -> list[str]:
    """Names of the linear verifiers, by layer."""
    config = writer.model.config
    assert isinstance(config, TransformerConfig)
    return [*(f"layer {layer}" for layer in range(config.layers - 1)), "trained"]


def prompts(world: AppendCases, names: Sequence[str], seed: int) -> list[list[int]]:
    """One prompt for each name; its example has numbers of its own."""
    return [world.prompt(name, rng=rng(seed, "prompt", name)) for name in names]


def random_names(count: int, seed: int) -> list[str]:
    """Names of three random letters that no verifier was trained on."""
    source = rng(seed, "names")
    names: list[str] = []
    while len(names) < count:
        name = "".join(chr(ord("a") + int(letter)) for letter in torch.randint(26, (3,), generator=source))
        names += [name] if name not in (*TRAINING_NAMES, *names) else []
    return names


@dataclass(frozen=True)
class Written:
    """What one model wrote with one decoding.

    requested      test cases requested in one repetition
    curve, paid    (repetition, completion): distinct correct cases and queries so far
    tokens         kept or erased; backtracks: per completion; first_errors: kind → completions
    """

    requested: int
    curve: np.ndarray
    paid: np.ndarray
    tokens: int
    backtracks: float
    first_errors: dict[str, int]
    completions: int
    example: str

    @property
    def accuracy(self) -> float:
        """Distinct correct cases divided by those requested, mean over repetitions."""
        return float(self.curve[:, -1].mean()) / self.requested

    @property
    def queries(self) -> float:
        """Queries to the model, mean over repetitions."""
        return float(self.paid[:, -1].mean())


def write(job: Job, writer: Writer) -> Written:
    """Write test cases; every decoding has the same prompts and random numbers. Rows: repetition, completion, name."""
    settings, world = job.settings, job.settings.world
    names = list(settings.misleading) if job.decoding.misleading else random_names(settings.names, job.seed)
    rows = prompts(world, names, job.seed) * (settings.repetitions * settings.completions)
    decoder = job.decoding.decoder(world.newline, world.cases)
    done = writer.complete(rows, decoder, "written", verifier=job.decoding.consulted)
    texts = [world.render(done.generated(row)) for row in range(len(done))]
    each = settings.completions * len(names)
    curve = [
        count_distinct(texts[start : start + each], names * settings.completions, world.cases)
        for start in range(0, len(texts), each)
    ]
    paid = done.counters["oracle_calls"].cpu().numpy().reshape(settings.repetitions, -1).cumsum(1)
    errors = [world.first_error(done.string(row)) for row in range(len(done))]
    return Written(
        requested=each * world.cases,
        curve=np.array(curve),
        paid=paid,
        tokens=int((done.lengths - done.starts).sum()) + done.total("tokens_erased"),
        backtracks=done.total("backtracks") / len(done),
        first_errors=dict(Counter(error[1].value for error in errors if error is not None)),
        completions=len(done),
        example=texts[0],
    )


@dataclass(frozen=True)
class Cases:
    """Test cases that all models wrote.

    written      for each decoding, what each model wrote
    validation   verifier → accuracy on strings held out, for each model
    loss         of each model at the end of training; errors: its wrong completions that verifiers were trained on
    """

    decodings: list[Decoding]
    written: list[list[Written]]
    validation: dict[str, list[float]]
    loss: list[float]
    errors: list[int]

    @classmethod
    def collect(cls, settings: Settings, lab: Lab, decodings: Iterable[Decoding]) -> Cases:
        """Train the models, which all code studies share, and let them write with each decoding."""
        unique = list(dict.fromkeys(decodings))
        models = Models.train(settings, lab, settings.world, settings.world.length, find_errors)
        errors = [writer.errors for writer in models.writers]
        return cls(
            unique,
            models.decode(write, unique, "test cases"),
            {name: [each.verifiers[name].validation for each in errors] for name in errors[0].verifiers},
            np.nanmean(models.runs.loss[:, -100:], axis=1).tolist(),
            [each.labels.count(0) for each in errors],
        )

    def __getitem__(self, decoding: Decoding) -> list[Written]:
        if decoding not in self.decodings:
            raise NotMeasured(f"the settings leave out top-p {decoding.top_p} with temperature {decoding.temperature}")
        return self.written[self.decodings.index(decoding)]

    def accuracy(self, decoding: Decoding) -> np.ndarray:
        return np.array([each.accuracy for each in self[decoding]])

    def queries(self, decoding: Decoding) -> np.ndarray:
        return np.array([each.queries for each in self[decoding]])

    def gap(self, decoding: Decoding, other: Decoding) -> np.ndarray:
        """Accuracy of one decoding minus another's, model by model (both on the same random numbers)."""
        return self.accuracy(decoding) - self.accuracy(other)

    def best(self, decodings: Sequence[Decoding]) -> Decoding:
        """The most accurate on average."""
        return max(decodings, key=lambda decoding: float(self.accuracy(decoding).mean()))

    def length(self, decoding: Decoding) -> float:
        """Queries of one completion."""
        return float(np.mean([each.paid[:, -1].sum() / each.completions for each in self[decoding]]))

    def backtracks(self, decoding: Decoding) -> float:
        """Per completion."""
        return float(np.mean([each.backtracks for each in self[decoding]]))

    def row(self, decoding: Decoding) -> Row:
        """Settings, accuracy and queries of a decoding with the published ones."""
        accuracy, queries = published(decoding)
        return {
            "Q": decoding.quota,
            "B": decoding.stride if decoding.quota else None,
            "τ": decoding.threshold if decoding.quota else None,
            "top-p": decoding.top_p,
            "T": decoding.temperature,
            "n": decoding.candidates or None,
            "accuracy": spread(self.accuracy(decoding)),
            "published accuracy": accuracy,
            "queries": spread(self.queries(decoding), 0),
            "published queries": queries,
        }
