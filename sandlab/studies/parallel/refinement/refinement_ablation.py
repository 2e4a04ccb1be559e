"""What refinement depends on: how much is corrupted, how many stages, the kind of noise, distillation, positions.

The source names a large masking ratio, distillation and positional attention as critical, without a table. Each model
of `parallel/translation` is trained again with one thing changed: the share u of words left uncorrupted (0.15 in the
source), stages S, [MASK] instead of random words, unambiguous data, no positional attention. Decoding is varied on
the unchanged model: remasking of repeats, the stop rule, three and five length hypotheses.

The stop rule matters: the public code compares after remasking and can return the noise with which a repeat was
replaced. Here no translation repeats a word, so remasking can only help. The null are untrained models. Full: five of
the ten trainings first planned (unchanged, u = 0.8, S = 1, distilled, no positional attention), each of the size of
`parallel/translation`.

**What was learnt** (quick, 2026-11-16). Leaving 80 % of the words uncorrupted ruins refinement (valid 0.05 after four
passes, 0.75 with 15 %), and unambiguous data help (0.90). Five length hypotheses chosen by the sum of log-probabilities
prefer short answers: valid falls to 0.42. Weighed with the probability of the length they help (0.79).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.learning.experiment import Experiment
from sandlab.learning.parallel.refinement import RefinementLoss
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.parallel import translation
from sandlab.studies.parallel._translation_runs import METRICS, judged
from sandlab.studies.study import Lab, Rows, Study

STEPS = (1, 2, 4)
DECODERS = {
    "4 passes": IterativeRefinement(4),
    "no remasking": IterativeRefinement(4, reject="none"),
    "stop after remasking": IterativeRefinement(4, stop="remasked"),
    "repeats above 0.9 stay": IterativeRefinement(4, protect=0.9),
    "least likely, linear": IterativeRefinement(4, reject="linear"),
    "from [MASK]": IterativeRefinement(4, noise="mask"),
    "3 lengths": IterativeRefinement(4, lengths=3),
    "5 lengths": IterativeRefinement(4, lengths=5),
    "5 lengths, weighed": IterativeRefinement(4, lengths=5, length_weight=1.0),
}


@dataclass(frozen=True)
class Settings:
    """Named experiments; "base" is the unchanged one."""

    names: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    sentences: int = 400


def settings(seeds: int, *, full: bool) -> Settings:
    world = translation.FULL_WORLD if full else shared.QUICK_WORLD
    loss = RefinementLoss(world.vocab)
    made = {
        "base": shared.refining(world, seeds, full=full),
        "u = 0.8": shared.refining(world, seeds, full=full, loss=replace(loss, keep=0.8)),
        "S = 1": shared.refining(world, seeds, full=full, loss=replace(loss, stages=1)),
        "[MASK] noise": shared.refining(world, seeds, full=full, loss=replace(loss, noise="mask")),
        "distilled": shared.refining(world.distilled(), seeds, full=full),
        "no positional attention": shared.refining(world, seeds, full=full, placed=False),
    }
    if full:
        made = {name: translation.smaller(each) for name, each in made.items() if name != "[MASK] noise"}
    return Settings(tuple(made), tuple(made.values()))


QUICK = settings(3, full=False)
study = Study(
    "parallel/refinement-ablation",
    title="Refinement wants heavily corrupted inputs and clear data",
    source=shared.SOURCE,
    at="§4.2.3",
    quick=QUICK,
    full=settings(3, full=True),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """models: name → (seed, T, metric) for T = 1, 2, 4; decoders: name → (seed, metric) of the base model."""

    models: dict[str, np.ndarray]
    decoders: dict[str, np.ndarray]

    def valid(self, name: str) -> np.ndarray:
        """(seed, T)"""
        return self.models[name][..., 0]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train(settings.experiments, label="ablations", weights=True)
    models = {}
    for name, experiment, run in zip(settings.names, settings.experiments, runs):
        noise = "mask" if name == "[MASK] noise" else "random"
        steps = [IterativeRefinement(count, noise=noise) for count in STEPS]
        models[name] = judged(lab, experiment, run, steps, settings.sentences)
    base = judged(lab, settings.experiments[0], runs[0], list(DECODERS.values()), settings.sentences)
    return Results(models, {name: base[:, place] for place, name in enumerate(DECODERS)})


@study.claim(Mean(above=0.0), at="§4.2.3", paper="a large masking ratio is critical")
def heavy_corruption(results: Results) -> np.ndarray:
    """Leaving 15 % of the words uncorrupted is better than 80 %.

    Smallest over T = 1, 2, 4 of valid(u = 0.15) − valid(u = 0.8).
    """
    return (results.valid("base") - results.valid("u = 0.8")).min(1)


@study.claim(Mean(above=0.0), at="§4.2.3", paper="distillation is critical")
def distillation_helps(results: Results) -> np.ndarray:
    """Unambiguous data are translated better.

    Smallest over T of valid(distilled) − valid(base).
    """
    return (results.valid("distilled") - results.valid("base")).min(1)


@study.claim(Mean(above=-0.02), at="§4.2.2.2")
def two_stages(results: Results) -> np.ndarray:
    """Training on one's own first answers does not hurt later passes.

    valid(S = 2) − valid(S = 1) at T = 4; −1 for seeds that say nothing valid.
    """
    return _no_worse(results.valid("base")[:, -1], results.valid("S = 1")[:, -1])


def _no_worse(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Difference of two shares; what says nothing valid is not as good as anything."""
    return np.where((one > 0) | (other > 0), one - other, -1.0)


@study.claim(Mean(above=0.0), at="§4.2.3", paper="positional attention is critical")
def positional_attention(results: Results) -> np.ndarray:
    """Positional attention helps.

    valid(with) − valid(without) at T = 4.
    """
    return results.valid("base")[:, -1] - results.valid("no positional attention")[:, -1]


@study.claim(Mean(above=-0.01), at="§4.2.3")
def remasking_does_not_hurt(results: Results) -> np.ndarray:
    """Remasking repeats does not hurt where translations have none.

    valid(remasked) − valid(not remasked), four passes; −1 for seeds that say nothing valid.
    """
    return _no_worse(results.decoders["4 passes"][:, 0], results.decoders["no remasking"][:, 0])


@study.claim(Mean(above=-0.02), at="§4.2.2.1", paper="5 length hypotheses")
def more_lengths(results: Results) -> np.ndarray:
    """Trying five lengths is no worse than one.

    valid(5 lengths) − valid(1 length), four passes; −1 for seeds that say nothing valid.
    """
    return _no_worse(results.decoders["5 lengths"][:, 0], results.decoders["4 passes"][:, 0])


@study.table
def ablations(results: Results) -> dict[str, Rows]:
    models = [
        {"model": name, "T": steps, **dict(zip(METRICS, values[:, place].mean(0).tolist()))}
        for name, values in results.models.items()
        for place, steps in enumerate(STEPS)
    ]
    decoders = [
        {"decoding": name, **dict(zip(METRICS, each.mean(0).tolist()))} for name, each in results.decoders.items()
    ]
    return {"models": models, "decoding": decoders}


@study.figure
def valid_translations(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=5.0, height=3.4, title=study.title)
    rows = {name: values[:, -1, 0] for name, values in results.models.items()}
    _bars(axes[0], rows, "training, T = 4")
    _bars(axes[1], {name: values[:, 0] for name, values in results.decoders.items()}, "decoding of the base model")
    return figure


def _bars(axis, rows: dict[str, np.ndarray], title: str) -> None:
    place = np.arange(len(rows))[::-1]
    axis.barh(place, [values.mean() for values in rows.values()], color=figures.COLOURS[5], height=0.6)
    for height, values in zip(place, rows.values()):
        axis.plot(values, [height] * len(values), "o", color=figures.COLOURS[0], ms=4)
    axis.set_yticks(place, list(rows))
    axis.set(xlabel="share of valid translations", title=title)
