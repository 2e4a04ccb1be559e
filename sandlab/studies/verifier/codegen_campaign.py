"""One job for every table of the code-generation experiments: train the model once, decode in all ways, count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.verifiers.base import LanguageVerifier, RandomVerifier
from sandlab.decoding.verifiers.trained import TrainedProbe
from sandlab.learning._engine.precision import computing
from sandlab.studies.verifier.codegen_model import (
    CaseWriter,
    CodeModel,
    fit_verifiers,
    harvest,
    pretrain,
    random_names,
)
from sandlab.worlds.verifier.append_checking import parse_cases

SMALL_MODEL = CodeModel()
DEPTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Way:
    """How test cases are written: the law that is sampled from, and what a verifier does about it.

    candidates   above 0: so many per line, the verifier of lines chooses (block best-of-n)
    quota        above 0: backtracking, `stride` tokens at a time, below `threshold`
    verifier     "trained" (activation of layer `layer`, −1 the last; `depth` linear maps), "exact" or "random"
    foreign      functions have misleading names
    """

    top_p: float = 0.95
    temperature: float = 1.0
    candidates: int = 0
    quota: int = 0
    stride: int = 4
    threshold: float = 0.1
    verifier: str = "trained"
    layer: int = -1
    depth: int = 1
    redo: str = "argmax"
    foreign: bool = False

    @property
    def label(self) -> str:
        """The key of this way among the campaign's results."""
        return repr(self)

    @property
    def guided(self) -> bool:
        return self.quota > 0

    @property
    def published(self) -> tuple[float, ...]:
        """Q, B, τ, top-p, temperature, candidates: the columns of the source's table."""
        guidance = (self.quota, self.stride, self.threshold) if self.guided else (0, 0, 0)
        return (*guidance, self.top_p, self.temperature, self.candidates)

    def decoder(self, newline: int, lines: int) -> Decoder:
        law: dict[str, Any] = {"top_p": self.top_p, "temperature": self.temperature}
        if self.candidates:
            return BlockBestOfN(candidates=self.candidates, separator=newline, blocks=lines, **law)
        if self.guided:
            return Backtracking(quota=self.quota, stride=self.stride, threshold=self.threshold, redo=self.redo, **law)
        return Sampling(**law)


PLAIN = Way()
MAIN = Way(quota=4)
GREEDY = Way(top_p=0.0)
HOT = replace(MAIN, top_p=1.0, temperature=1.2)


@dataclass(frozen=True)
class CodeCampaign:
    """The model, and how much is written in each way."""

    model: CodeModel = SMALL_MODEL
    seed: int = 0
    device: str = "cpu"
    names: int = 5
    foreign: tuple[str, ...] = ("pop", "max")
    completions: int = 10
    repetitions: int = 2
    harvested: int = 1000
    probe_steps: int = 200
    hidden: int = 64
    nuclei: tuple[float, ...] = (0.8, 0.95, 1.0)
    temperatures: tuple[float, ...] = (0.2, 0.6, 1.0, 1.2)

    @property
    def sampled(self) -> list[Way]:
        """Every nucleus with every temperature, and greedy."""
        return [Way(top_p, heat) for top_p in self.nuclei for heat in self.temperatures] + [GREEDY]

    @property
    def blocks(self) -> list[Way]:
        return [replace(PLAIN, candidates=number) for number in (2, 4, 8)]

    @property
    def guided(self) -> list[Way]:
        """Backtracking with the trained verifier, by law, stride and threshold: rows of the full table."""
        return [
            replace(way, threshold=threshold)
            for way in (MAIN, replace(MAIN, top_p=1.0), replace(MAIN, top_p=1.0, stride=10), HOT)
            for threshold in (0.1, 0.5)
        ]

    @property
    def ablations(self) -> list[Way]:
        """Layers, depths and kinds of verifier, no greedy rewriting, misleading names."""
        layers = [replace(MAIN, layer=layer) for layer in range(self.model.layers - 1)]
        depths = [replace(MAIN, depth=depth) for depth in DEPTHS[1:]]
        kinds = [replace(MAIN, verifier=kind, quota=quota) for kind in ("exact", "trained") for quota in (4, 10)]
        kinds += [replace(MAIN, verifier="random"), replace(MAIN, stride=10)]
        both = [replace(MAIN, threshold=threshold) for threshold in (0.1, 0.5)]
        return [
            *layers,
            *depths,
            *kinds,
            *(replace(way, redo="none") for way in both),
            *(replace(way, foreign=True) for way in (PLAIN, *both)),
        ]


@dataclass(frozen=True)
class CodeCampaigns:
    """The same campaign for several models, trained together."""

    each: CodeCampaign
    seeds: tuple[int, ...]


def code_campaigns(config: CodeCampaigns) -> list[dict[str, Any]]:
    """Everything that is measured, model by model."""
    device = config.each.device
    with computing("tf32", torch.device(device)):
        trained = pretrain(config.each.model, config.seeds, device)
        return [
            {"loss": loss} | examine(CaseWriter(model, config.each.model.world), replace(config.each, seed=seed))
            for seed, (model, loss) in zip(config.seeds, trained)
        ]


def examine(writer: CaseWriter, config: CodeCampaign) -> dict[str, Any]:
    """Everything that is measured on one model."""
    tokens, lines = harvest(writer, config.harvested, config.seed)
    points = [f"layers.{layer}.resid_post" for layer in range(config.model.layers)]
    probing = {"steps": config.probe_steps, "hidden": config.hidden}
    probes = fit_verifiers(writer, tokens, points, DEPTHS, config.seed, **probing)
    ((_, chooser),) = fit_verifiers(writer, lines, points[-1:], (1,), config.seed, **probing).items()
    bench = Bench(config, writer, points, probes, chooser)
    ways = dict.fromkeys([*config.sampled, *config.blocks, *config.guided, *config.ablations])
    return {
        "errors harvested": tokens.labels.count(0),
        "strings": len(tokens.labels),
        "validation": {f"{point},{depth}": probe.validation_accuracy for (point, depth), probe in probes.items()},
        "validation, lines": chooser.validation_accuracy,
        "ways": {way.label: bench.measure(way) for way in ways},
    }


@dataclass(frozen=True)
class Bench:
    """The trained parts, and how a way of writing is measured on them."""

    config: CodeCampaign
    writer: CaseWriter
    points: list[str]
    probes: dict[tuple[str, int], TrainedProbe]
    chooser: TrainedProbe

    def measure(self, way: Way) -> dict[str, Any]:
        """Scores of each repetition; all repetitions are written in one batch, on the same random numbers in each way.

        Rows: repetition, then completion, then name.
        """
        config, world = self.config, self.writer.world
        names = list(config.foreign) if way.foreign else random_names(config.names, config.seed)
        rows = config.repetitions * config.completions
        prompts = self.writer.prompts(names, config.seed) * rows
        decoder = way.decoder(world.newline, world.cases)
        done = self.writer.complete(decoder, prompts, (config.seed, "written"), **self._verifier(way))
        texts = [self.writer.text(done, row) for row in range(len(done))]
        return self._score(done, texts, names)

    def _verifier(self, way: Way) -> dict[str, Any]:
        if way.candidates:
            return {"point": self.points[-1], "probe": self.chooser}
        if not way.guided:
            return {}
        if way.verifier == "exact":
            return {"verifier": LanguageVerifier(self.writer.world)}
        if way.verifier == "random":
            return {"verifier": RandomVerifier(self.config.seed)}
        point = self.points[way.layer]
        return {"point": point, "probe": self.probes[point, way.depth]}

    def _score(self, done: Generations, texts: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        config, world = self.config, self.writer.world
        each = config.completions * len(names)
        spent = done.counters["oracle_calls"].cpu().numpy()
        curves, paid = [], []
        for rep in range(config.repetitions):
            part = slice(rep * each, (rep + 1) * each)
            curves.append(distinct_correct(texts[part], list(names) * config.completions, world.cases))
            paid.append(np.cumsum(spent[part]))
        errors = [world.first_error(done.string(row)) for row in range(len(done))]
        kept = int((done.lengths - done.starts).sum())
        return {
            "accuracy": [float(curve[-1]) / (each * world.cases) for curve in curves],
            "queries": [int(cost[-1]) for cost in paid],
            "written": kept + done.total("tokens_erased"),
            "backtracks": done.total("backtracks") / len(done),
            "curve": np.array(curves),
            "paid": np.array(paid),
            "errors": dict(Counter(error[1].value for error in errors if error is not None)),
            "completions": len(done),
            "example": texts[0],
        }


def distinct_correct(texts: Sequence[str], names: Sequence[str], lines: int) -> np.ndarray:
    """How many distinct correct test cases the first 1, 2, 3, … completions hold, per name and added up."""
    seen: set[tuple[str, Any]] = set()
    counts = []
    for text, name in zip(texts, names):
        seen |= {(name, case) for case in parse_cases(text, name, lines) if case.correct}
        counts.append(len(seen))
    return np.array(counts)
