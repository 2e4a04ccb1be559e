"""Equal accuracy, different attention: how much the maps of trained models vary between seeds.

Transformers with one head and two layers are trained on bounded Dyck words (two types, depth 4, at most 28 brackets).

They all reach more than 97 % closing accuracy. Their second-layer attention on one word, START (((())))[[[[]]]], is
drawn for several seeds; the box marks the last unmatched open bracket of each row, where a stack would look. The bars
compare the mean squared distance of maps between seeds with that of random causal maps, 4(H_{N+1} − 1) − 2H_N. The
minimal first layer (type and depth given) leaves one attention layer to train. Full adds linear positions (one input
coordinate i/6000) and models of width 200 trained at rate 3e-4.

**What was learnt.** Untrained models (the null), whose attention is nearly uniform, also have nearly equal first layers
and do not look like a stack: these two claims say that training does not change that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.dyck.bracket_attention import random_attention_variation
from sandlab.models.base import Config
from sandlab.studies.claims import Exact, Mean, NotMeasured, Share
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._shared import BOUNDED, SOURCE, LongWords, training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.dyck.brackets import scan_brackets

LABELS = {
    "standard": "standard, positions none",
    "linear": "standard, positions linear",
    "wide": "width 200, positions none",
    "wide_linear": "width 200, positions linear",
    "minimal": "minimal first layer",
}


@dataclass(frozen=True)
class Settings:
    """Standard models and models with a minimal first layer; linear positions and wide models where they are given."""

    standard: Experiment
    minimal: Experiment
    linear: Experiment | None = None
    wide: Experiment | None = None
    wide_linear: Experiment | None = None


STANDARD, MINIMAL = shared.transformer(BOUNDED), shared.minimal(BOUNDED)
LINEAR, WIDE = shared.transformer(BOUNDED, linear=True), shared.transformer(BOUNDED, width=200)


def models(model: Config, *, steps: int, seeds: int = 40, lr: float = 3e-3) -> Experiment:
    final = (shared.closing, LongWords(), shared.probe_maps)
    return Experiment(BOUNDED, model, training(steps, lr=lr), seeds, final=final)


QUICK = Settings(models(STANDARD, steps=1000, seeds=5), models(MINIMAL, steps=600, seeds=5, lr=1e-2))
study = Study(
    "dyck/attention-variation",
    title="Every model closes brackets correctly, with second-layer attention that differs from seed to seed",
    source=SOURCE,
    at="§4.1 and Figures 1, 3",
    quick=QUICK,
    full=Settings(
        standard=models(STANDARD, steps=2000),
        minimal=models(MINIMAL, steps=1000, lr=1e-2),
        linear=models(LINEAR, steps=2000),
        wide=models(WIDE, steps=2000, lr=3e-4),
        wide_linear=models(shared.transformer(BOUNDED, width=200, linear=True), steps=2000, lr=3e-4),
    ),
    null=Settings(untrained(QUICK.standard), untrained(QUICK.minimal)),
)


@dataclass(frozen=True)
class Results:
    """Runs by setting, and the mean squared distance of two random causal maps of 15 tokens."""

    runs: dict[str, Runs]
    baseline: float

    def variation(self, setting: str, layer: int = -1) -> np.ndarray:
        return shared.variation(self.runs[setting].final["maps"][:, layer])

    def over_random(self, setting: str) -> np.ndarray:
        """Variation of the last layer over that of random maps, a pseudo-value for each seed."""
        return shared.jackknife(lambda mean: mean / self.random, self.variation(setting))

    @property
    def random(self) -> float:
        """Mean squared distance of random causal maps of the probe word's length."""
        return random_attention_variation(self.runs["standard"].final["maps"].shape[-1])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    chosen = {name: each for name, each in vars(settings).items() if each is not None}
    runs = lab.train(list(chosen.values()), label="dyck models")
    return Results(dict(zip(chosen, runs)), random_attention_variation(15))


@study.claim(Mean(above=0.97), at="§4.1", paper="at least 97 %")
def accurate(results: Results) -> np.ndarray:
    """Every trained model closes brackets correctly.

    Closing accuracy in distribution, all models.
    """
    return np.concatenate([runs.final["accuracy"] for runs in results.runs.values()])


@study.claim(Mean(above=0.25), at="§4.1", paper="2.27 against 2.85: 0.80")
def varies(results: Results) -> np.ndarray:
    """Yet second-layer attention differs between seeds by an amount comparable to random maps.

    Mean variation ‖A₁ − A₂‖²_F between pairs of seeds, second layer, no positions, over the random baseline.
    """
    return results.over_random("standard")


@study.claim(Mean(equals=0.8, within=0.2), at="§4.1", paper="2.27 against 2.85: 0.80")
def varies_as_published(results: Results) -> np.ndarray:
    """It differs by as much as published.

    Mean variation between pairs of seeds, second layer, no positions, over the random baseline.
    """
    return results.over_random("standard")


@study.claim(Mean(below=0.5), at="extended Table", paper="0.047")
def first_layer(results: Results) -> np.ndarray:
    """First-layer attention is nearly the same (close to uniform) in all seeds.

    Mean variation of the first layer, plus 1 for models that close less than 97 % of brackets.
    """
    runs = results.runs["standard"]
    return shared.jackknife(np.asarray, results.variation("standard", layer=0)) + (runs.final["accuracy"] < 0.97)


@study.claim(Mean(below=0.5), at="§4.1", paper="0.24 / 2.27 = 0.11")
def minimal_varies_less(results: Results) -> np.ndarray:
    """With a minimal first layer the variation is much smaller.

    Variation of minimal models over that of standard models.
    """
    return shared.jackknife(np.divide, results.variation("minimal"), results.variation("standard"))


@study.claim(Mean(below=0.9), at="Figure 1")
def not_stack_like(results: Results) -> np.ndarray:
    """Attention is not stack-like: its maximum is rarely always on the bracket to be closed.

    Share of queries whose largest second-layer weight is on the last unmatched bracket; 1 for models that close less
    than 97 % of brackets.
    """
    final = results.runs["standard"].final
    return np.where(final["accuracy"] >= 0.97, final["stack_like"], 1.0)


@study.claim(Exact(equals=2.85, within=0.1425), at="§4.1, footnote", paper="2.85")
def baseline(results: Results) -> float:
    """Two random causal maps of 15 tokens are about 2.85 apart.

    Closed form 4(H_{N+1} − 1) − 2H_N at N = 15.
    """
    return results.baseline


@study.claim(Mean(above=0.25), at="§4.1", paper="2.20 against 2.85: 0.77", presets=("full",))
def varies_linear(results: Results) -> np.ndarray:
    """With linear positions second-layer attention varies between seeds just as much.

    Mean variation between pairs of seeds, second layer, linear positions, over the random baseline.
    """
    if "linear" not in results.runs:
        raise NotMeasured("no models with linear positions were trained")
    return results.over_random("linear")


@study.claim(Share(above=0.5), at="Figure 1", presets=("full",))
def mostly_not_stack_like(results: Results) -> np.ndarray:
    """Most models, whatever their width and positions, do not attend like a stack.

    Share of models whose largest second-layer weight is on the bracket to be closed in under 90 % of rows.
    """
    trained = [runs for name, runs in results.runs.items() if name != "minimal"]
    return np.concatenate([runs.final["stack_like"] for runs in trained]) < 0.9


@study.table
def variation(results: Results) -> Rows:
    rows: Rows = [
        {
            "setting": LABELS[name],
            "seeds": len(runs),
            "accuracy": float(runs.final["accuracy"].mean()),
            "long accuracy": float(runs.final["long_accuracy"].mean()),
            "first layer": float(results.variation(name, layer=0).mean()),
            "last layer": float(results.variation(name).mean()),
        }
        for name, runs in results.runs.items()
    ]
    return [*rows, {"setting": "random causal maps", "last layer": results.random}]


@study.figure
def maps(results: Results) -> Figure:
    """Last layers of the first three seeds; a box marks the bracket that a stack would look at."""
    word = shared.probe_word(2, 4)
    opener = scan_brackets(word, 2).opener[0].tolist()
    boxes = [(key - 0.5, query - 0.5) for query, key in enumerate(opener) if key >= 0]
    panels = [(name, seed) for name in ("standard", "minimal") for seed in range(min(3, len(results.runs[name])))]
    figure, axes = figures.new(columns=len(panels) // 2, rows=2, width=2.6, height=2.6)
    for axis, (name, seed) in zip(axes, panels):
        pattern = results.runs[name].final["maps"][seed, -1]
        shared.draw_map(axis, pattern, f"{name}, seed {seed}", BOUNDED.render(word[0]))
        for corner in boxes:
            axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#30a2c7", linewidth=0.9))
    return figure


@study.figure
def bars(results: Results) -> dict[str, Figure]:
    rows = variation(results)
    figure, (axis,) = figures.new(width=5.6, height=0.5 * len(rows) + 1.4)
    index = np.arange(len(rows))
    axis.barh(index, [row["last layer"] for row in rows], height=0.38, label="last layer")
    axis.barh(index + 0.4, [row.get("first layer", 0.0) for row in rows], height=0.38, label="first layer")
    axis.set_yticks(index + 0.2, [row["setting"] for row in rows], fontsize=8)
    axis.set(xlabel="mean ‖A₁ − A₂‖² between seeds")
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"variation": figure}
