"""The long tail of errors: transformers against an LSTM on flip-flop language modelling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.lenses.flip_flop.glitches import Glitch, draw_glitch_maps
from sandlab.lenses.flip_flop.tail_errors import ErrorCurve, best_so_far
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SETS, SOURCE, Run, by_seed, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

LETTERS = "wri01"
TITLES = {"in": "training distribution", "sparse": "sparse tail, FFL(0.98)", "dense": "dense tail, FFL(0.1)"}


TRANSFORMER = Run(steps=1200, checks=20, distances=True, glitches=True)
RECURRENT = Run(model="lstm", width=128, steps=300, batch_size=16, lr=3e-3, targets=30_000)


@dataclass(frozen=True)
class Settings:
    """The transformer's run and the LSTM's, and how many seeds of each."""

    seeds: int = 4
    lstm_seeds: int = 4
    transformer: Run = TRANSFORMER
    lstm: Run = RECURRENT


FULL = Settings(
    seeds=5,
    lstm_seeds=8,
    transformer=Run(
        length=512, layers=4, width=128, heads=4, steps=6000, batch_size=16, lr=3e-4, targets=300_000, checks=40,
        precision="tf32", distances=True, glitches=True,
    ),
    lstm=Run(model="lstm", length=512, width=128, steps=500, batch_size=16, lr=3e-3, targets=300_000),
)  # fmt: skip


@study(
    "flip-flop/long-tail",
    title="Perfect in distribution, wrong in the tails: transformers on a one-bit memory",
    source=f"{SOURCE}, Figures 2 and 6 (results R1, R2)",
    tour=False,
    quick=Settings(),
    full=FULL,
    claims=[
        Claim(
            "transformer-in-distribution",
            "A transformer learns to answer every read of its training distribution.",
            f"{SOURCE}, §4",
            "mean read error on FFL(0.8)",
            Below(0.005),
            paper="about 0",
        ),
        Claim(
            "transformer-tail",
            "Yet most transformers answer some reads of a shifted distribution wrongly.",
            f"{SOURCE}, (R1)",
            "share of seeds with an error on the sparse or the dense tail",
            Above(0.5),
            over="share",
            paper="most runs never reach 0",
        ),
        Claim(
            "transformer-tail-size",
            "The tail error is not a rounding effect.",
            f"{SOURCE}, Figure 2",
            "mean over seeds of the larger of the two tail errors",
            Above(0.002),
        ),
        Claim(
            "lstm-zero",
            "A one-layer LSTM makes no error at all, on any of the three sets, with far fewer steps.",
            f"{SOURCE}, (R2)",
            "share of seeds with exactly zero errors on all three sets",
            Above(0.5),
            over="share",
            paper="100 of 100 runs",
        ),
        Claim(
            "erratic",
            "After the training error is gone the tail error still moves up and down.",
            f"{SOURCE}, Figure 6",
            "mean number of rises of the tail error along the second half of training",
            Above(0.5),
            paper="erratic, non-monotone curves",
        ),
        Claim(
            "worse-than-lstm",
            "Every transformer is worse in the tails than every LSTM.",
            f"{SOURCE}, Figure 6",
            "share of transformers whose larger tail error exceeds that of the worst LSTM",
            Above(0.5),
            over="share",
            paper="all",
        ),
        Claim(
            "two-or-five",
            "It does not matter whether the answer is the likeliest of all five tokens or of the two bits.",
            f"{SOURCE}, §4 leaves it open",
            "largest difference of the two read errors, all models and sets",
            Below(1e-3),
            exact=True,
        ),
        Claim(
            "sparse-tail",
            "At the published length the sparse tail is one that breaks.",
            f"{SOURCE}, (R1)",
            "median over seeds of the error on the sparse tail",
            Above(0.0),
            exact=True,
            presets=("full",),
        ),
        Claim(
            "spread",
            "Seeds differ widely in their error on the sparse tail.",
            f"{SOURCE}, Figure 6",
            "largest over smallest error of the seeds (at least 1e-6)",
            Above(5.0),
            exact=True,
            paper="high variance between replicates",
            presets=("full",),
        ),
    ],
)
def long_tail(config: Settings, lab: Lab) -> Outcome:
    """A memory cell is written, ignored and read; a read must repeat the latest write.

    Both models are trained on FFL(0.8) (a tenth of the instructions write, a tenth read) with AdamW, 50 steps of
    warm-up and linear decay, on fresh strings; only answers to reads count. They are then tested on fresh strings of
    the same language, of the sparse one (p_i = 0.98: long waits) and of the dense one (p_i = 0.1: many distractors).

    Quick: strings of 64 tokens, 2 layers, width 64; at this length it is the dense tail that breaks. Full: strings of
    512 tokens as published, 4 layers, width 128, 6000 steps of 16 strings, 3·10⁵ reads per test. In the curves, thin
    lines are seeds, thick ones the best so far; the LSTM's line lies on the axis. Errors are drawn on a scale that is
    linear near zero, so that an exact zero is visible as such. The second figure resolves the tail errors by the
    distance of a read to its write, all seeds together, with exact 95 % intervals: a bin without errors still has an
    upper end. The third shows the shortest input found on which the first erring seed is wrong, and what each of its
    heads attends to there: the framed row is the read that is answered wrongly, white dots are row maxima, the marks
    above are written symbols (dot 0, diamond 1).
    """
    population = split_seeds(config.transformer, config.seeds, lab.device)
    recurrent = [replace(config.lstm, seeds=tuple(range(config.lstm_seeds)), device=lab.device)]
    found = lab.map(train_run, [*population, *recurrent], label="flip-flop runs")
    transformers, lstms = found[: len(population)], found[len(population) :]
    tails = np.maximum(by_seed(transformers, "final", "sparse"), by_seed(transformers, "final", "dense"))
    lstm_errors = sum(by_seed(lstms, "final", f"{name}_errors") for name in SETS)
    lstm_tails = np.maximum(by_seed(lstms, "final", "sparse"), by_seed(lstms, "final", "dense"))
    sparse = by_seed(transformers, "final", "sparse")
    measurements: dict[str, Any] = {
        "transformer-in-distribution": by_seed(transformers, "final", "in"),
        "transformer-tail": (tails > 0).astype(float),
        "transformer-tail-size": tails,
        "lstm-zero": (np.asarray(lstm_errors) == 0).astype(float),
        "erratic": _rises(transformers),
        "worse-than-lstm": (tails > lstm_tails.max()).astype(float),
        "two-or-five": max(
            float(np.abs(result["bits"][name] - result["free"][name]).max()) for result in found for name in SETS
        ),
        "sparse-tail": float(np.median(sparse)),
        "spread": float(sparse.max() / max(sparse.min(), 1e-6)),
    }
    pictures = {"curves": _draw(transformers, lstms), "distances": _draw_distances(transformers)}
    glitches = [result["glitch"] for result in transformers if result.get("glitch")]
    if glitches:
        pictures["glitch"] = _draw_glitch(min(glitches, key=lambda glitch: len(glitch["tokens"])))
    tables = {"errors": _table(transformers, lstms), "shortest failing inputs": [_failing(g) for g in glitches]}
    return Outcome(measurements, pictures, tables)


def _rises(results: list[dict[str, Any]]) -> np.ndarray:
    """How often the worse tail error goes up between evaluations in the second half of each run."""
    rises = []
    for result in results:
        worst = np.maximum(result["curves"]["sparse"], result["curves"]["dense"])
        late = worst[:, worst.shape[1] // 2 :]
        rises.append((np.diff(late, axis=1) > 0).sum(1))
    return np.concatenate(rises)


def _draw(transformers: list[dict[str, Any]], lstms: list[dict[str, Any]]) -> Any:
    figure, axes = figures.new(columns=3, width=3.6, height=3.0)
    for axis, name in zip(axes, SETS):
        for results, colour, label in ((transformers, 0, "transformer"), (lstms, 1, "LSTM")):
            curves = np.concatenate([result["curves"][name] for result in results])
            steps = results[0]["steps"]
            shade = figures.COLOURS[colour]
            for curve in curves:
                axis.plot(steps, curve, color=shade, linewidth=0.6, alpha=0.6, linestyle="-")
            best = np.median(best_so_far(curves), 0)
            axis.plot(steps, best, color=shade, label=label, linestyle="-" if colour == 0 else "--")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_ylim(0, 1)
        axis.set(title=TITLES[name], xlabel="training step")
    axes[0].set_ylabel("read error")
    axes[0].legend()
    return figure


def _draw_distances(results: list[dict[str, Any]]) -> Any:
    """Errors of all seeds together against the distance to the latest write, with exact intervals."""
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    for axis, name in zip(axes, ("sparse", "dense")):
        parts = [result["distances"][name] for result in results]
        errors = np.concatenate([np.atleast_2d(part["errors"]) for part in parts]).sum(0)
        counts = sum(part["counts"] * len(np.atleast_2d(part["errors"])) for part in parts)
        curve = ErrorCurve(parts[0]["edges"], errors, np.asarray(counts))
        low, high = curve.intervals
        shown = curve.counts > 0
        place, rate = curve.edges[:-1][shown], curve.rates[shown]
        reach = np.stack([rate - low[shown], high[shown] - rate]).clip(min=0)
        axis.errorbar(place, rate, yerr=reach, fmt="o", markersize=4, capsize=2, linestyle="none")
        axis.set_xscale("symlog", base=2, linthresh=1)
        axis.set_yscale("symlog", linthresh=1e-5)
        axis.set_ylim(0, 1)
        axis.set(title=TITLES[name], xlabel="pairs since the latest write (at least)")
    axes[0].set_ylabel("read error, all seeds")
    return figure


def _draw_glitch(found: dict[str, Any]) -> Any:
    tokens = torch.from_numpy(found["tokens"])
    glitch = Glitch(tokens, found["place"], found["answer"], found["truth"], found["tried"])
    written = found["tokens"]
    writes = {place + 1: int(written[place + 1]) - 3 for place in np.flatnonzero(written[:-1] == 0).tolist()}
    return draw_glitch_maps(found["maps"], glitch, list(LETTERS), writes)


def _failing(found: dict[str, Any]) -> dict[str, Any]:
    written = "".join(LETTERS[token] for token in found["tokens"])
    answers = {"says": LETTERS[found["answer"]], "true": LETTERS[found["truth"]]}
    return {"seed": found["seed"], "tokens": len(found["tokens"]), **answers, "input": written}


def _table(transformers: list[dict[str, Any]], lstms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for label, results in (("transformer", transformers), ("LSTM", lstms)):
        values = {name: by_seed(results, "final", name) for name in SETS}
        for seed in range(len(values["in"])):
            errors = {name: float(values[name][seed]) for name in SETS}
            rows.append({"model": label, "seed": seed, "parameters": results[0]["parameters"], **errors})
    return rows
