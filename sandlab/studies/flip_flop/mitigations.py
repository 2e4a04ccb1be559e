"""What helps against attention glitches: data, scale, regularisers, positions, sharpening, and recurrence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.errors import require
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SETS, SOURCE, Run, by_seed, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

RESCUE = (0.9, 0.98, 0.1)
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "baseline": ("baseline", {}),
    "resume on tails": ("data", {"extra_ignore": (0.8, *RESCUE), "extra_steps": 400}),
    "mixture": ("data", {"ignore": RESCUE, "average": "sequence"}),
    "mixture with 0.8": ("data", {"ignore": (0.8, 0.98, 0.1), "average": "sequence"}),
    "3 × steps": ("scale", {"steps": 3.0}),
    "3 × batch": ("scale", {"batch_size": 3.0}),
    "1 layer": ("size", {"layers": 1}),
    "4 layers": ("size", {"layers": 4}),
    "6 layers": ("size", {"layers": 6}),
    "width 32": ("size", {"width": 32}),
    "width 128": ("size", {"width": 128}),
    "width 256": ("size", {"width": 256}),
    "2 heads": ("size", {"heads": 2}),
    "8 heads": ("size", {"heads": 8}),
    "16 heads": ("size", {"heads": 16}),
    "rate 3e-4": ("optimiser", {"lr": 3e-4}),
    "rate 3e-3": ("optimiser", {"lr": 3e-3}),
    "β₁ 0.95": ("optimiser", {"betas": (0.95, 0.999)}),
    "β₂ 0.95": ("optimiser", {"betas": (0.9, 0.95)}),
    "weight decay 0": ("regulariser", {"weight_decay": 0.0}),
    "weight decay 1": ("regulariser", {"weight_decay": 1.0}),
    "weight decay 0.01": ("regulariser", {"weight_decay": 0.01}),
    "attention dropout 0.1": ("regulariser", {"attention_dropout": 0.1}),
    "feed-forward dropout 0.1": ("regulariser", {"dropout": 0.1}),
    "embedding dropout 0.1": ("regulariser", {"embedding_dropout": 0.1}),
    "embedding dropout 0.3": ("regulariser", {"embedding_dropout": 0.3}),
    "embedding dropout 0.5": ("regulariser", {"embedding_dropout": 0.5}),
    "sinusoidal positions": ("architecture", {"positions": "sinusoidal"}),
    "rotary positions": ("architecture", {"positions": "rotary"}),
    "ALiBi positions": ("architecture", {"positions": "alibi"}),
    "no positions": ("architecture", {"positions": "none"}),
    "gated feed-forward": ("architecture", {"gated": True}),
    "entropy 0.01": ("sharpening", {"sharpen": "entropy", "sharpen_strength": 0.01}),
    "entropy 0.1": ("sharpening", {"sharpen": "entropy", "sharpen_strength": 0.1}),
    "entropy 1": ("sharpening", {"sharpen": "entropy", "sharpen_strength": 1.0}),
    "entropy 0.1, rising": (
        "sharpening",
        {"sharpen": "entropy", "sharpen_strength": 0.1, "sharpen_schedule": "linear", "sharpen_start": 0.2},
    ),
    "entropy 0.1, oscillating": (
        "sharpening",
        {"sharpen": "entropy", "sharpen_strength": 0.1, "sharpen_schedule": "oscillating"},
    ),
    "−L2 0.1": ("sharpening", {"sharpen": "negative-l2", "sharpen_strength": 0.1}),
    "−max 0.1": ("sharpening", {"sharpen": "negative-max", "sharpen_strength": 0.1}),
    "first layer only, entropy 0.1": (
        "sharpening",
        {"sharpen": "entropy", "sharpen_strength": 0.1, "sharpen_layers": "0"},
    ),
    "dropout 0.5 + entropy 0.1": (
        "sharpening",
        {"embedding_dropout": 0.5, "sharpen": "entropy", "sharpen_strength": 0.1},
    ),
    "LSTM": ("recurrent", {"model": "lstm", "width": 128, "batch_size": 16, "steps": 0.25, "lr": 3e-3}),
}
"""Label → (family, changes to the baseline's run); a real number for a whole-number field is a factor."""
FIXED_POSITIONS = ("sinusoidal positions", "rotary positions", "ALiBi positions")
SIZES = {
    "layers": ("1 layer", "baseline", "4 layers", "6 layers"),
    "width": ("width 32", "baseline", "width 128", "width 256"),
    "heads": ("2 heads", "baseline", "8 heads", "16 heads"),
}


BASELINE = Run()


@dataclass(frozen=True)
class Settings:
    """Seeds per setting, the baseline's run, and which settings are compared."""

    seeds: int = 3
    baseline: Run = BASELINE
    compared: tuple[str, ...] = ("baseline", "resume on tails")


@study(
    "flip-flop/mitigations",
    title="Only data from the tails removes the glitches; sharpening and dropout soften them",
    source=f"{SOURCE}, Figures 3 and 9–11 (results R4–R7)",
    quick=Settings(),
    full=Settings(seeds=12, baseline=Run(targets=30_000), compared=tuple(FAMILIES)),
    claims=[
        Claim(
            "before",
            "The baseline errs on a tail although it answers its training distribution.",
            f"{SOURCE}, (R1)",
            "mean of the larger tail error of the baseline",
            Above(0.002),
        ),
        Claim(
            "tails-in-training",
            "Going on with strings from the tails removes the errors there.",
            f"{SOURCE}, (R4)",
            "mean of the larger tail error after resuming on tail data",
            Below(0.002),
            paper="improvement by a wide margin; 6 of 25 mixture runs without any error",
        ),
        Claim(
            "no-corner",
            "No setting trained without tail data is perfect on both tails for most seeds.",
            f"{SOURCE}, (R7)",
            "largest share, over attention settings without tail data, of seeds with zero errors on both tails",
            Below(0.5),
            exact=True,
            paper="none of about 10,000 runs",
            presets=("full",),
        ),
        Claim(
            "dropout-sparse",
            "Dropout on the embedding lowers the tail error.",
            f"{SOURCE}, (R6)",
            "log10 of tail error with embedding dropout 0.5 minus that of the baseline, means over seeds",
            Below(0.0),
            exact=True,
            paper="about 2 orders of magnitude on the sparse set",
            presets=("full",),
        ),
        Claim(
            "sharpening-helps",
            "Sharpening attention lowers the tail error.",
            f"{SOURCE}, (R6)",
            "log10 of the best sharpened setting's tail error minus the baseline's, means over seeds",
            Below(0.0),
            exact=True,
            paper="an order of magnitude",
            presets=("full",),
        ),
        Claim(
            "mixture-better",
            "Training on a mixture that holds both tails lowers the tail error.",
            f"{SOURCE}, (R4)",
            "log10 of the mixture's tail error minus the baseline's, means over seeds",
            Below(0.0),
            exact=True,
            paper="by a wide margin",
            presets=("full",),
        ),
        Claim(
            "mixture-zero",
            "Some runs on the mixture make no error at all.",
            f"{SOURCE}, (R4)",
            "share of mixture runs with zero errors on both tails",
            Above(0.0),
            over="share",
            paper="6 of 25",
            presets=("full",),
        ),
        Claim(
            "steps-no-cure",
            "Three times the steps do not remove the errors on the dense tail.",
            f"{SOURCE}, (R5)",
            "share of seeds with zero errors on the dense tail after three times the steps",
            Below(0.5),
            over="share",
            paper="worse on the dense tail",
            presets=("full",),
        ),
        Claim(
            "size-not-monotone",
            "The error falls steadily with none of depth, width and number of heads.",
            f"{SOURCE}, (R5)",
            "factors along which the mean tail error falls at every step",
            Below(0.5),
            exact=True,
            paper="no monotone relation",
            presets=("full",),
        ),
        Claim(
            "optimiser",
            "Learning rate and moment decays do not change the picture.",
            f"{SOURCE}, section on the optimiser",
            "largest ∣log10∣ of a setting's mean tail error over the baseline's",
            Below(0.5),
            exact=True,
            paper="no significant effect",
            presets=("full",),
        ),
        Claim(
            "positions-dense",
            "Positions that are not trained help on the dense tail.",
            f"{SOURCE}, (R6)",
            "log10 of the mean dense error with fixed positions (median of three kinds) minus the baseline's",
            Below(0.0),
            exact=True,
            paper="they help",
            presets=("full",),
        ),
        Claim(
            "recurrent",
            "The LSTM makes no error on either tail.",
            f"{SOURCE}, (R2)",
            "share of LSTM seeds with zero errors on both tails",
            Above(0.5),
            over="share",
            presets=("full",),
        ),
    ],
)
def mitigations(config: Settings, lab: Lab) -> Outcome:
    """Every remedy of the paper, each as a change of one run.

    The violins show, for each setting, the read error of its seeds on the sparse and on the dense tail, with exact
    zeros on the axis at the bottom; the scatter puts each trained model at (dense error, sparse error). What the paper
    says: data from the tails is the only remedy that reaches the corner; scale does not help reliably; embedding
    dropout and attention sharpening are the strongest of the others; recurrence solves the task.

    Quick compares the baseline (2 layers, width 64, 64 tokens, 1200 steps on FFL(0.8)) with the same models after 400
    more steps on strings of p_i in {0.8, 0.9, 0.98, 0.1}. Full trains 12 seeds of every setting at the same length,
    where only the dense tail breaks; `flip-flop/sparse-remedies` is the same for the sparse one. Mixtures are trained
    with the loss averaged per string: otherwise dense strings, which hold many more reads, own the loss.
    """
    require(set(config.compared) <= set(FAMILIES), "compared", config.compared, f"among {', '.join(FAMILIES)}")
    errors = train_settings(lab, config.baseline, config.compared, config.seeds)
    measurements = _measure(errors)
    notes = {
        "dropout-sparse": "in 1200 steps a model that loses half of its embedding does not converge",
        "sharpening-helps": "at this size the sparse tail is solved already, and the dense one is not helped",
    }
    rows = [setting_row(label, values) for label, values in errors.items()]
    return Outcome(
        measurements, {"violins": draw_violins(errors), "scatter": draw_scatter(errors)}, {"settings": rows}, notes
    )


def train_settings(lab: Lab, baseline: Run, compared: tuple[str, ...], seeds: int) -> dict[str, dict[str, np.ndarray]]:
    """Setting → set → error of each seed."""
    runs = {label: setting(baseline, label) for label in compared}
    jobs = [(label, part) for label, run in runs.items() for part in split_seeds(run, seeds, lab.device)]
    # A run that only goes on from the baseline repeats its first part: one job gives both.
    wanted = [(label, part) for label, part in jobs if not (label == "baseline" and "resume on tails" in runs)]
    found = lab.map(train_run, [part for _, part in wanted], label="flip-flop remedies")
    results: dict[str, list[dict[str, Any]]] = {label: [] for label in compared}
    for (label, _), result in zip(wanted, found):
        results[label].append(result)
        if label == "resume on tails" and "baseline" in results:
            results["baseline"].append({**result, "final": result["first"]})
    return {label: {name: by_seed(parts, "final", name) for name in SETS} for label, parts in results.items() if parts}


def setting(baseline: Run, label: str) -> Run:
    """The run of a setting: the baseline with its changes."""
    changes = dict(FAMILIES[label][1])
    for name in ("steps", "batch_size"):
        if isinstance(changes.get(name), float):
            changes[name] = max(1, int(changes[name] * getattr(baseline, name)))
    return replace(baseline, label=label, **changes)


def worse(values: dict[str, np.ndarray]) -> np.ndarray:
    return np.maximum(values["sparse"], values["dense"])


def _measure(errors: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "before": worse(errors["baseline"]),
        "tails-in-training": worse(errors["resume on tails"]),
    }
    if len(errors) < len(FAMILIES):
        return found
    plain = [label for label, (family, _) in FAMILIES.items() if family not in ("data", "recurrent")]
    found["no-corner"] = max(float((worse(errors[label]) == 0).mean()) for label in plain)
    found["dropout-sparse"] = gain(errors, "embedding dropout 0.5")
    sharpened = [label for label, (family, _) in FAMILIES.items() if family == "sharpening"]
    found["sharpening-helps"] = min(gain(errors, label) for label in sharpened)
    found |= _measure_families(errors)
    found["recurrent"] = (worse(errors["LSTM"]) == 0).astype(float)
    return found


def gain(errors: dict[str, dict[str, np.ndarray]], label: str, tail: str = "") -> float:
    """log10 of a setting's mean error over the baseline's, on one tail or on the worse of the two."""

    def mean(name: str) -> float:
        values = errors[name][tail] if tail else worse(errors[name])
        return float(values.mean()) + 1e-6

    return float(np.log10(mean(label) / mean("baseline")))


def _measure_families(errors: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    means = {label: float(worse(values).mean()) for label, values in errors.items()}
    falling = [all(means[b] < means[a] for a, b in pairwise(labels)) for labels in SIZES.values()]
    tuned = [label for label, (family, _) in FAMILIES.items() if family == "optimiser"]
    return {
        "mixture-better": gain(errors, "mixture"),
        "mixture-zero": (worse(errors["mixture"]) == 0).astype(float),
        "steps-no-cure": (errors["3 × steps"]["dense"] == 0).astype(float),
        "size-not-monotone": float(sum(falling)),
        "optimiser": max(abs(gain(errors, label)) for label in tuned),
        "positions-dense": float(np.median([gain(errors, label, "dense") for label in FIXED_POSITIONS])),
    }


def setting_row(label: str, values: dict[str, np.ndarray]) -> dict[str, Any]:
    row: dict[str, Any] = {"setting": label, "family": FAMILIES[label][0], "seeds": len(values["in"])}
    for name in SETS:
        row |= {f"{name} median": float(np.median(values[name])), f"{name} max": float(values[name].max())}
    return row | {"perfect on both tails": int((worse(values) == 0).sum())}


def draw_violins(errors: dict[str, dict[str, np.ndarray]]) -> Any:
    """One row per setting: least, quartiles and largest error of its seeds, and how many are exactly zero."""
    labels = list(errors)
    figure, axes = figures.new(columns=2, width=3.9, height=max(2.2, 0.19 * len(labels) + 1.0))
    for axis, name, title in zip(axes, ("sparse", "dense"), ("sparse tail, FFL(0.98)", "dense tail, FFL(0.1)")):
        for place, label in enumerate(labels):
            values = np.sort(errors[label][name])
            colour = _colour(label)
            low, first, middle, third, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
            axis.plot([low, high], [place, place], color=colour, linewidth=1.0, linestyle="-")
            axis.plot([first, third], [place, place], color=colour, linewidth=5.0, alpha=0.5, linestyle="-")
            axis.plot(middle, place, "o", color=colour, markersize=3.5)
            zeros = int((values == 0).sum())
            if zeros:
                axis.annotate(f"{zeros} ", (0, place), ha="right", va="center", fontsize=7, color=colour)
        axis.set_xscale("symlog", linthresh=1e-4)
        axis.set_xlim(-3e-5, 1)
        axis.set_xticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1])
        axis.set(title=title, xlabel="read error (at the left: seeds without any)")
        shown = labels if name == "sparse" else [""] * len(labels)
        axis.set_yticks(range(len(labels)), shown, fontsize=7.5)
        axis.set_ylim(len(labels) - 0.4, -0.6)
    return figure


def draw_scatter(errors: dict[str, dict[str, np.ndarray]]) -> Any:
    figure, (axis,) = figures.new(width=4.6, height=4.0)
    seen = set()
    for label, values in errors.items():
        family = FAMILIES[label][0]
        marker = "s" if family == "recurrent" else "o"
        name = family if family not in seen else None
        axis.plot(values["dense"], values["sparse"], marker, color=_colour(label), markersize=4, alpha=0.7, label=name)
        seen.add(family)
    for scale in (axis.set_xscale, axis.set_yscale):
        scale("symlog", linthresh=1e-4)
    axis.set(xlabel="read error, dense tail", ylabel="read error, sparse tail", title="one dot per trained model")
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _colour(label: str) -> str:
    families = list(dict.fromkeys(family for family, _ in FAMILIES.values()))
    return figures.COLOURS[families.index(FAMILIES[label][0]) % len(figures.COLOURS)]
