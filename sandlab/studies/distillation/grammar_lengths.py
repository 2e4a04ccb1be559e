"""Lengths of sentences of the five grammars: the exact law against the published percentiles and against samples.

The law of the length is a product of polynomials, one for each rule. The published percentiles were read off samples;
they agree with the exact ones within three tokens. The study also draws the example derivation, the decision tree of
parities and the rules: what the source shows as diagrams.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.models.distillation.published import bert
from sandlab.models.distillation.sketch import draw_encoder
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.derivations import derivations, sample_sentences
from sandlab.worlds.distillation.diagrams import draw_decision_tree, draw_derivation, draw_rules
from sandlab.worlds.distillation.parities import HierarchicalParity
from sandlab.worlds.distillation.synthetic_grammars import grammar

PERCENTS = (25, 50, 75, 95)
PRINTED = {
    "cfg3b": (251, 278, 308, 342),
    "cfg3i": (276, 307, 340, 386),
    "cfg3h": (202, 238, 270, 300),
    "cfg3g": (212, 258, 294, 341),
    "cfg3f": (191, 247, 302, 364),
}
"""Percentiles of the source (25, 50, 75, 95)."""


@dataclass(frozen=True)
class Settings:
    """Sentences of each seed, seeds; `other` takes sentences of another grammar."""

    sentences: int = 2000
    seeds: int = 5
    other: bool = False


study = Study(
    "distillation/grammar-lengths",
    title="Sentences of the published grammars have the published lengths",
    source=shared.SOURCE,
    at="Section 4.2.8.3 and Figure 4.23",
    quick=Settings(),
    full=Settings(sentences=10_000, seeds=16),
    null=Settings(other=True),
)


@dataclass(frozen=True)
class Sampled:
    """One seed's sentences of one grammar."""

    name: str
    seed: int
    sentences: int


@dataclass(frozen=True)
class Results:
    exact: dict[str, list[int]]
    means: dict[str, float]
    sampled: dict[str, np.ndarray]
    """Mean lengths by seed."""
    laws: dict[str, np.ndarray] = field(default_factory=dict)


def mean_length(what: Sampled) -> float:
    """The job: mean length of sampled sentences."""
    return float(sample_sentences(grammar(what.name), what.sentences, rng=rng(what.seed)).lengths.double().mean())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    names = list(PRINTED)
    drawn = names[1:] + names[:1] if settings.other else names
    jobs = [Sampled(name, seed, settings.sentences) for name in drawn for seed in range(settings.seeds)]
    found = np.array(lab.map(mean_length, jobs, label="sentences")).reshape(len(names), settings.seeds)
    rules = {name: grammar(name) for name in names}
    return Results(
        {name: [each.length_percentile(percent) for percent in PERCENTS] for name, each in rules.items()},
        {name: float(each.lengths @ np.arange(len(each.lengths))) for name, each in rules.items()},
        dict(zip(names, found)),
        {name: each.lengths for name, each in rules.items()},
    )


@study.claim(Exact(between=(-4, 4)), at="Section 4.2.8.3", paper="five rows of percentiles")
def published_percentiles(results: Results) -> list[float]:
    """The exact percentiles are those of the source, up to its sampling error.

    Exact minus printed, for four percentiles of five grammars.
    """
    return [float(a - b) for name in PRINTED for a, b in zip(results.exact[name], PRINTED[name])]


@study.claim(Mean(equals=0.0, within=2.0), at="Section 4.2.8.3")
def sampler_is_right(results: Results) -> np.ndarray:
    """Sampled sentences have the exact mean length.

    Largest |difference| over grammars, in tokens, by seed.
    """
    gaps = [np.abs(values - results.means[name]) for name, values in results.sampled.items()]
    return np.max(gaps, 0)


@study.table
def lengths(results: Results) -> dict[str, Rows]:
    return {
        "lengths": [
            {
                "grammar": name,
                **{f"{percent} %": value for percent, value in zip(PERCENTS, results.exact[name])},
                "printed": ", ".join(map(str, PRINTED[name])),
                "mean": results.means[name],
            }
            for name in PRINTED
        ]
    }


@study.figure
def laws(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6.4, title="The exact law of the length")
    for name, law in results.laws.items():
        axis.plot(np.arange(len(law)), law, label=name)
    axis.set(xlabel="tokens of a sentence", ylabel="probability", xlim=(50, 480))
    axis.legend()
    return figure


@study.figure
def diagrams(results: Results) -> dict[str, Figure]:
    return {
        # This seed's sentence is the source's: "the cat ran away".
        "derivation": draw_derivation(derivations(grammar("toy-english"), 1, rng=rng(18))),
        "derivation of cfg3b": draw_derivation(derivations(grammar("cfg3b", "14"), 1, rng=rng(0))),
        "decision tree": draw_decision_tree(HierarchicalParity()),
        **{f"rules of {name}": draw_rules(grammar(name)) for name in PRINTED},
        "BERT": draw_encoder(bert(8, 433)),
    }
