"""Passes against accuracy: samplers of a masked model, token-by-token writing, and a verifier, on the same languages.

Balanced brackets of length 10 (two types, depth at most 3). A masked model fills hidden brackets; each decoder spends
some passes of a network per string: all brackets at once (one pass), k-Gibbs steps from there, the least likely
brackets again, one bracket after another in random order. Beside it a causal model of the same size writes left to
right, alone and with a verifier that takes back what cannot be completed. The question of §4.4: does a parallel
decoder reach the accuracy of a sequential one in fewer passes? Blocks drawn in one pass are products and break
brackets; drawing them again repairs.

The second picture is toy translation: refinement with more passes, and with restarts among which the exact checker
picks, against autoregressive sampling with the same checker. The null are untrained models. Full: models of brackets of
width 128 trained for 2000 steps (first planned: 5000, factor 0.4), the translators of `parallel/translation`, and 1000
strings (first planned: 2000).

**What was learnt** (2026-11-18, full). Brackets drawn all at once are hardly ever balanced (0.005); twelve steps of
2-Gibbs, 13 passes, repair two thirds; one by one (10 passes) reaches 0.83, left to right (11 passes) 0.997, with the
verifier 1. No parallel decoder reaches the sequential one with fewer passes. In translation four restarts and the
checker lift refinement from 0.57 to 0.62; token by token is at 0.83 with 13 passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from sandlab import figures
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.neural import generator_of
from sandlab.decoding.parallel.beam import BeamSearch
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.decoding.parallel.samplers import AdaptiveBlockDynamics, KGibbs, SiteSampler, uncertain_sites
from sandlab.decoding.parallel.site_models import MaskedModelSites
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.learning.experiment import Experiment, Training
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.parallel._translation_runs import Judged, prepared
from sandlab.studies.parallel.translation import FULL as FULL_TRANSLATION
from sandlab.studies.parallel.translation import quick_settings
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.parallel.hidden_tokens import HiddenTokens
from sandlab.worlds.parallel.translation import ToyTranslation

SITES = 10
PARALLEL = ("all at once", "then 5-Gibbs, 4 steps", "then 2-Gibbs, 12 steps", "then the least likely", "one by one")
SEQUENTIAL = ("left to right", "with a verifier")
TRANSLATING = ("T = 1", "T = 4", "T = 4, best of 4 starts", "token by token", "token by token, best of 4")


@dataclass(frozen=True)
class Settings:
    """The masked and the causal model of brackets, the two translators, and strings to write."""

    masked: Experiment
    causal: Experiment
    refining: Experiment
    writing: Experiment
    strings: int = 500


def settings(seeds: int, steps: int, width: int, *, full: bool) -> Settings:
    world = Dyck(types=2, depth=3, length=SITES, words="complete")
    how = Training(steps=steps, batch_size=64, lr=2e-3, warmup=50, schedule="linear", evals=5, eval_examples=256)
    masked = TransformerConfig(vocab=5, outputs=4, length=SITES, layers=2, heads=4, width=width, causal=False)
    causal = TransformerConfig(vocab=6, length=SITES + 2, layers=2, heads=4, width=width)
    translators = FULL_TRANSLATION if full else quick_settings(seeds, 300)
    return Settings(
        Experiment(HiddenTokens(world), masked, how, seeds),
        Experiment(world, causal, how, seeds),
        translators.raw,
        translators.autoregressive,
        1000 if full else 500,
    )


QUICK = settings(3, 500, 48, full=False)
study = Study(
    "parallel/passes-frontier",
    title="Parallel decoders trade passes for accuracy; repairing blocks and checking both help",
    source=shared.SOURCE,
    at="§4.4, with the verifier of Botta et al. 2025",
    quick=QUICK,
    full=settings(3, 2000, 128, full=True),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """(seed, decoder, [passes, accuracy]) of the parallel and sequential decoders of brackets, and of translations."""

    parallel: np.ndarray
    sequential: np.ndarray
    translation: np.ndarray

    def accuracy(self, kind: str, name: str, names: tuple[str, ...]) -> np.ndarray:
        return np.asarray(getattr(self, kind)[:, names.index(name), 1])


def fill(job: Judged, model: nn.Module) -> np.ndarray:
    """Passes and share of balanced words of each way to fill in brackets."""
    world = job.experiment.world
    assert isinstance(world, HiddenTokens)
    sites = MaskedModelSites(model.to(job.device).eval(), SITES, 4, 4)
    stream = rng(job.seed, "strings", device=job.device)
    everything = torch.ones(job.sentences, SITES, dtype=torch.bool, device=job.device)
    first = sites.redraw(torch.zeros_like(everything, dtype=torch.long), everything, stream)
    samplers: list[tuple[SiteSampler, int]] = [
        (KGibbs(5), 4), (KGibbs(2), 12), (AdaptiveBlockDynamics(uncertain_sites(3)), 4)
    ]  # fmt: skip
    found = [(1, first)]
    for sampler, steps in samplers:
        trace = sampler.run(sites, first, steps, rng=stream)
        found.append((1 + trace.passes, trace.states[-1]))
    sites.one_by_one = True
    found.append((SITES, sites.redraw(torch.zeros_like(first), everything, stream)))
    return np.array([[passes, _balanced(world.world, tokens)] for passes, tokens in found])


def _balanced(world: object, tokens: torch.Tensor) -> float:
    assert isinstance(world, Dyck)
    return float(torch.as_tensor(world.accepts(tokens)).double().mean())


def write(job: Judged, model: nn.Module) -> np.ndarray:
    """The same for the causal model, alone and with the exact verifier."""
    world = job.experiment.world
    assert isinstance(world, Dyck)
    decoders: tuple[Decoder, ...] = (Sampling(), Backtracking(quota=8, stride=1))
    rows = []
    for decoder in decoders:
        done = decoder.generate(
            generator_of(model.to(job.device).eval()), [[world.start_token]] * job.sentences, max_new=SITES + 1,
            verifier=LanguageVerifier(world) if decoder.needs_verifier else None, rng=rng(job.seed, "write"),
            eos=world.end_token,
        )  # fmt: skip
        good = world.contains(done.tokens, done.lengths).double().mean()
        rows.append([float(done.counters["oracle_calls"].double().mean()), float(good)])
    return np.array(rows)


def translate(job: Judged, model: nn.Module) -> np.ndarray:
    """Passes and share of valid translations of refinement, or (causal) of writing, without and with a checker."""
    ready, world = prepared(model, job.device), job.experiment.world
    assert isinstance(world, ToyTranslation)
    source = world.sample(job.sentences, rng=rng(job.seed, "test sentences", device=job.device)).inputs
    stream = rng(job.seed, "starts", device=job.device)
    if ready.config.causal:
        one = BeamSearch(1).translate(ready, source)
        draws = [BeamSearch(1, sample=True).translate(ready, source, rng=stream) for _ in range(4)]
        tries = [(float((each.tokens != 0).sum(1).double().mean()), each.tokens) for each in (one, *draws)]
        return np.array([_checked(world, source, tries[:1]), _checked(world, source, tries[1:])])
    rows = []
    for steps, starts in ((1, 1), (4, 1), (4, 4)):
        runs = [IterativeRefinement(steps).translate(ready, source, rng=stream) for _ in range(starts)]
        rows.append(_checked(world, source, [(float(run.passes.double().mean()), run.tokens) for run in runs]))
    return np.array(rows)


def _checked(
    world: ToyTranslation, source: torch.Tensor, tries: list[tuple[float, torch.Tensor]]
) -> tuple[float, float]:
    """Passes of all tries, and the share of sources for which one of them is valid."""
    valid = torch.stack([world.valid(source, tokens) for _, tokens in tries]).any(0)
    return sum(passes for passes, _ in tries), float(valid.double().mean())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    experiments = [settings.masked, settings.causal, settings.refining, settings.writing]
    runs = lab.train(experiments, label="models", weights=True)
    found = []
    for experiment, run, job in zip(experiments, runs, (fill, write, translate, translate)):
        jobs = [Judged(experiment, seed, (), settings.strings, lab.device) for seed in run.seeds]
        models = [run.model(experiment.model, place) for place in range(len(run))]
        found.append(np.stack(lab.map(job, jobs, given=models, label="decoding")))
    return Results(found[0], found[1], np.concatenate(found[2:], 1))


@study.claim(Mean(above=0.1), at="§4.1.4")
def redrawing_repairs(results: Results) -> np.ndarray:
    """Drawing blocks again repairs what one pass broke.

    Balanced words after 12 steps of 2-Gibbs minus after one pass.
    """
    start = results.accuracy("parallel", "all at once", PARALLEL)
    return results.accuracy("parallel", "then 2-Gibbs, 12 steps", PARALLEL) - start


@study.claim(Mean(above=0.2), at="§4.1.4", paper="a block drawn at once is a product")
def one_pass_breaks_brackets(results: Results) -> np.ndarray:
    """One bracket after another is far better than all at once.

    Balanced words, one by one minus all at once, the same masked model.
    """
    start = results.accuracy("parallel", "all at once", PARALLEL)
    return results.accuracy("parallel", "one by one", PARALLEL) - start


@study.claim(Mean(above=0.0), source="Botta et al. 2025", at="Table 1")
def verifier_helps(results: Results) -> np.ndarray:
    """A verifier repairs what the causal model got wrong.

    Balanced words with the verifier minus without.
    """
    with_it = results.accuracy("sequential", "with a verifier", SEQUENTIAL)
    return with_it - results.accuracy("sequential", "left to right", SEQUENTIAL)


@study.claim(Mean(above=0.0), at="§4.2")
def restarts_and_checker_help(results: Results) -> np.ndarray:
    """Restarts of refinement, with a checker that picks, translate more than one start.

    Valid translations with four starts minus one, T = 4.
    """
    best = results.accuracy("translation", "T = 4, best of 4 starts", TRANSLATING)
    return best - results.accuracy("translation", "T = 4", TRANSLATING)


@study.table
def frontier(results: Results) -> Rows:
    kinds = (
        ("brackets", "parallel", PARALLEL),
        ("brackets", "sequential", SEQUENTIAL),
        ("translation",) * 2 + (TRANSLATING,),
    )
    return [
        {"task": task, "decoder": name, "passes": float(values[0]), "accuracy": float(values[1])}
        for task, kind, names in kinds
        for name, values in zip(names, getattr(results, kind).mean(0))
    ]


@study.figure
def passes(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=5.4, height=3.6, title="Accuracy against passes of the network")
    brackets = ((results.parallel, PARALLEL, 0), (results.sequential, SEQUENTIAL, 1))
    for axis, kinds, title in (
        (axes[0], brackets, "balanced brackets"),
        (axes[1], ((results.translation, TRANSLATING, 0),), "toy translation"),
    ):
        for values, names, colour in kinds:
            for place, name in enumerate(names):
                x, y = values[:, place].mean(0)
                second = colour or (name.startswith("token") and axis is axes[1])
                axis.plot(values[:, place, 0], values[:, place, 1], "o", color=figures.COLOURS[int(second)], ms=5)
                axis.annotate(name, (x, y), (5, 4), textcoords="offset points", fontsize=8)
        axis.set(
            xscale="log", xlabel="passes per answer", ylabel="share of correct answers", title=title, ylim=(-0.03, 1.08)
        )
        axis.set_xlim(0.8, axis.get_xlim()[1] * 2.2)
    return figure
