"""Remedies against attention glitches, each as a change of one experiment, and the figures that compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.errors import require
from sandlab.learning.experiment import Experiment, Runs
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import Penalised, SequenceMean, Sharpening
from sandlab.lenses.flip_flop.pictures import draw_error_ranges, draw_error_scatter
from sandlab.lenses.flip_flop.probes import ReadErrors
from sandlab.studies.claims import NotMeasured
from sandlab.studies.flip_flop._shared import LSTM, SETS, glitches, larger_tail
from sandlab.studies.study import Lab, Rows
from sandlab.worlds.flip_flop.language import FlipFlop

Change = Callable[[Experiment], Experiment]
RESCUE = (0.9, 0.98, 0.1)
RESUMED_STEPS = 400


def model(**options: Any) -> Change:
    return lambda base: replace(base, model=replace(base.model, **options))


def training(**options: Any) -> Change:
    return lambda base: replace(base, training=replace(base.training, **options))


def three_times(field: str) -> Change:
    return lambda base: training(**{field: 3 * getattr(base.training, field)})(base)


def sharpen(
    strength: float, kind: str = "entropy", schedule: str = "constant", start: float = 0.0, layers: str = "*"
) -> Change:
    """A penalty on diffuse attention; a schedule that is not constant sets in after the share `start` of the steps."""

    def change(base: Experiment) -> Experiment:
        steps = base.training.steps
        penalty = Sharpening(strength, kind, layers, schedule, int(start * steps), steps, period=max(1, steps // 10))
        return training(objective=Penalised(CrossEntropy(), (penalty,)))(base)

    return change


def mixture(*shares: float, times: int = 1) -> Change:
    """Training on a mixture, with `times` as many seeds.

    The loss is averaged per string: dense strings, which hold more reads, would dominate.
    """

    def change(base: Experiment) -> Experiment:
        world = FlipFlop.ignoring(*shares, length=language(base).length)
        finals = tuple(replace(each, world=world) if isinstance(each, ReadErrors) else each for each in base.final)
        seeds = times * len(base.seed_list) if times > 1 else base.seeds
        changed = replace(base, world=world, probes=(ReadErrors(world),), final=finals, seeds=seeds)
        return training(objective=SequenceMean())(changed)

    return change


def resume(base: Experiment) -> Experiment:
    """The baseline, then more steps with a fresh schedule on strings that include both tails."""
    world = FlipFlop.ignoring(0.8, *RESCUE, length=language(base).length)
    return replace(base, then=training(steps=RESUMED_STEPS)(replace(base, world=world)))


def lstm(base: Experiment) -> Experiment:
    steps = max(1, base.training.steps // 4)
    recurrent = replace(base, model=LSTM)
    return training(batch_size=16, steps=steps, lr=3e-3)(recurrent)


def language(experiment: Experiment) -> FlipFlop:
    assert isinstance(experiment.world, FlipFlop)
    return experiment.world


FIXED_POSITIONS = ("sinusoidal positions", "rotary positions", "ALiBi positions")
FAMILIES: dict[str, dict[str, Change]] = {
    "baseline": {"baseline": lambda base: base},
    "data": {
        "resume on tails": resume,
        "mixture": mixture(*RESCUE, times=4),
        "mixture with 0.8": mixture(0.8, 0.98, 0.1),
    },
    "scale": {"3 × steps": three_times("steps"), "3 × batch": three_times("batch_size")},
    "size": {
        "1 layer": model(layers=1),
        **{f"{layers} layers": model(layers=layers) for layers in (4, 6)},
        **{f"width {width}": model(width=width) for width in (32, 128, 256)},
        **{f"{heads} heads": model(heads=heads) for heads in (2, 8, 16)},
    },
    "optimiser": {
        "rate 3e-4": training(lr=3e-4),
        "rate 3e-3": training(lr=3e-3),
        "β₁ 0.95": training(betas=(0.95, 0.999)),
        "β₂ 0.95": training(betas=(0.9, 0.95)),
    },
    "regulariser": {
        **{f"weight decay {decay:g}": training(weight_decay=decay) for decay in (0.0, 1.0, 0.01)},
        "attention dropout 0.1": model(attention_dropout=0.1),
        "feed-forward dropout 0.1": model(mlp_dropout=0.1),
        **{f"embedding dropout {rate}": model(embedding_dropout=rate) for rate in (0.1, 0.3, 0.5)},
    },
    "architecture": {
        # Sinusoids have size 1 per coordinate: next to tokens of size 1/√width they would drown them.
        "sinusoidal positions": model(positions="sinusoidal", token_std=1.0),
        "rotary positions": model(positions="rotary"),
        "ALiBi positions": model(positions="alibi"),
        "no positions": model(positions="none"),
        "gated feed-forward": model(gated=True),
    },
    "sharpening": {
        **{f"entropy {strength:g}": sharpen(strength) for strength in (0.01, 0.1, 1.0, 10.0, 30.0)},
        "entropy 0.1, rising": sharpen(0.1, schedule="linear", start=0.2),
        "entropy 0.1, oscillating": sharpen(0.1, schedule="oscillating"),
        "−L2 0.1": sharpen(0.1, "negative-l2"),
        "−max 0.1": sharpen(0.1, "negative-max"),
        "first layer only, entropy 0.1": sharpen(0.1, layers="0"),
        "dropout 0.5 + entropy 0.1": lambda base: sharpen(0.1)(model(embedding_dropout=0.5)(base)),
    },
    "recurrent": {"LSTM": lstm},
}
"""Family → setting → what it changes in the baseline."""
FAMILY = {label: family for family, settings in FAMILIES.items() for label in settings}


@dataclass(frozen=True)
class Settings:
    """The baseline, and the settings that are compared."""

    baseline: Experiment
    compared: tuple[str, ...] = ("baseline", "resume on tails")


@dataclass(frozen=True)
class Results:
    """Setting → runs; what was resumed is the second part of the baseline's."""

    runs: dict[str, Runs]

    def errors(self, label: str, tail: str = "") -> np.ndarray:
        """Final error of each seed on one tail, or on the larger of the two."""
        if label not in self.runs:
            raise NotMeasured(f"{label!r} is not among the compared settings")
        final = self.runs[label].final
        return final[tail] if tail else larger_tail(final)

    def of_family(self, family: str, tail: str) -> np.ndarray:
        """The same of all models of a family."""
        return np.concatenate([self.errors(label, tail) for label in self.runs if FAMILY[label] == family])

    def perfect(self, label: str) -> np.ndarray:
        """Which seeds have no error on either tail."""
        return self.errors(label) == 0

    def glitches(self, tail: str = "") -> np.ndarray:
        """Tail error of the baseline where it has learnt its distribution; 0 for seeds that have not."""
        return glitches(self.runs["baseline"].final, tail)

    def excess(self, label: str, tail: str = "", orders: float = 0.0) -> np.ndarray:
        """Error of each seed minus 10^orders times the baseline's, on one tail or on the larger of the two.

        Below 0 on average: log10 of the ratio of the mean errors is below `orders`.
        """
        before = self.errors("baseline", tail)
        return self.errors(label, tail)[: len(before)] - 10**orders * before

    def best_excess(self, labels: Sequence[str], tail: str = "", orders: float = 0.0) -> np.ndarray:
        """`excess` of the best of several settings: chosen on the even seeds, measured on the odd ones."""
        best = min(labels, key=lambda label: float(self.errors(label, tail)[::2].mean()))
        return self.excess(best, tail, orders)[1::2]

    def median_excess(self, labels: Sequence[str], tail: str, orders: float = 0.0) -> np.ndarray:
        """`excess` of each seed's median over several settings."""
        return np.median([self.excess(label, tail, orders) for label in labels], axis=0)


def one_below_the_other(differences: Sequence[np.ndarray]) -> np.ndarray:
    """Rows for `Order` whose steps are the given differences: the smallest of them is judged, all at once."""
    return np.cumsum([np.zeros_like(differences[0]), *differences], axis=0)


def compare(settings: Settings, lab: Lab) -> Results:
    """Train every setting; one training gives both the baseline and the runs that are resumed from it."""
    compared = settings.compared
    require(set(compared) <= set(FAMILY), "compared", compared, f"among {', '.join(FAMILY)}")
    labels = [label for label in compared if not (label == "baseline" and "resume on tails" in compared)]
    experiments = [FAMILIES[FAMILY[label]][label](settings.baseline) for label in labels]
    runs = dict(zip(labels, lab.train(experiments, label="flip-flop remedies")))
    resumed = runs.get("resume on tails")
    if resumed is not None and resumed.then is not None:
        runs |= {"baseline": replace(resumed, then=None), "resume on tails": resumed.then}
    return Results({label: runs[label] for label in compared})


def settings(results: Results) -> Rows:
    """The table of a comparison."""
    rows = []
    for label, runs in results.runs.items():
        row: dict[str, Any] = {"setting": label, "family": FAMILY[label], "seeds": len(runs)}
        for name in SETS:
            row |= {f"{name} median": float(np.median(runs.final[name])), f"{name} max": float(runs.final[name].max())}
        rows.append(row | {"perfect on both tails": int(results.perfect(label).sum())})
    return rows


def comparison(results: Results) -> dict[str, Figure]:
    """The figures of a comparison: the errors of each setting's seeds on both tails, and one dot per model."""
    labels = list(results.runs)
    violins, axes = figures.new(columns=2, width=3.9, height=max(2.2, 0.19 * len(labels) + 1.0))
    for axis, tail in zip(axes, ("sparse", "dense")):
        errors = {label: results.errors(label, tail) for label in labels}
        draw_error_ranges(axis, errors, [colour_of(FAMILY[label]) for label in labels])
        axis.set_title(SETS[tail])
    axes[1].set_yticklabels([])
    families = list(dict.fromkeys(FAMILY[label] for label in labels))
    points = {family: (results.of_family(family, "dense"), results.of_family(family, "sparse")) for family in families}
    scatter, (axis,) = figures.new(width=4.6, height=4.0)
    draw_error_scatter(axis, points, [colour_of(family) for family in families])
    return {"violins": violins, "scatter": scatter}


def colour_of(family: str) -> str:
    return figures.COLOURS[list(FAMILIES).index(family) % len(figures.COLOURS)]
