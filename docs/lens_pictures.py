"""Pictures for the pages of the lenses about chains of thought: each lens on a network whose answer is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pictures import svg

import sandlab as sl
from sandlab import figures
from sandlab.circuits.reasoning.ideal import ideal_features
from sandlab.learning.reasoning.features import FeatureTraining, RetrievalTraining, train_features, train_retrieval
from sandlab.learning.reasoning.reduced import ReducedLego, attention_masses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAN = FeatureTraining("C4", neurons=8, phases=((5.0, 3000),))
WORLD = sl.worlds.Lego("C6", variables=44, length=5, predict_blanks=True)


def lens_picture(name: str) -> bytes | None:
    """What a lens measures, where its page has a picture."""
    return svg(LENSES[name]()) if name in LENSES else None


@functools.cache
def _ideal(beta: float = 2.5) -> Any:
    return sl.circuits.ideal_lego_transformer(WORLD, beta)


@functools.cache
def _descent() -> Any:
    return train_features(PLAN)


def _lines(title: str, x: str, y: str, curves: dict[str, tuple[Any, Any]], **options: Any) -> Figure:
    figure, (axis,) = figures.new(width=4.8, height=3.0, title=title)
    for label, (places, values) in curves.items():
        axis.plot(places, values, marker="o", markersize=3, label=label)
    axis.set(xlabel=x, ylabel=y, **options)
    if options.get("xscale") == "log":
        axis.set_xticks(places, [str(place) for place in places])
        axis.minorticks_off()
    if len(curves) > 1:
        axis.legend(fontsize=7)
    return figure


def _grid(values: Any, title: str, x: str, y: str) -> Figure:
    figure, (axis,) = figures.new(width=4.4, height=3.2)
    figures.heatmap(axis, np.asarray(values), title=title, x=x, y=y)
    return figure


def _accuracy() -> Figure:
    lengths = (5, 8, 11, 14, 17, 20, 24)
    worlds = [replace(WORLD, length=length) for length in lengths]
    found = [sl.lenses.answer_accuracy(_ideal(), world, examples=60, rng=sl.rng(0)) for world in worlds]
    curves = {
        "per step": [float(each.per_step) for each in found],
        "all steps": [float(each.all_steps) for each in found],
    }
    title = "The ideal network, β = 2.5"
    return _lines(
        title, "length of the chain", "accuracy", {name: (lengths, values) for name, values in curves.items()}
    )


def _concentration() -> Figure:
    found = sl.lenses.attention_concentration(_ideal(), WORLD, examples=20, rng=sl.rng(0))
    return _grid(found.maps, "answers find their predicate and themselves", "key clause", "answer")


def _collisions() -> Figure:
    lengths = (2, 4, 8, 16, 32, 64)
    found = [sl.lenses.collision_rates("S4", length, rng=sl.rng(0)) for length in lengths]
    curves = {name: (lengths, [getattr(each, name) for each in found]) for name in ("crowded", "repeated", "loaded")}
    return _lines("Chance agreements on four points", "length", "share of chains", curves, xscale="log")


def _events() -> Figure:
    points = range(3, 9)
    found = [sl.lenses.confusion_events(n) for n in points]
    curves = {name: (points, [each[name] for each in found]) for name in found[0]}
    return _lines("Events of length 2 under S_n", "points n", "probability", curves)


def _order() -> Figure:
    start = _descent().initial
    strength = sl.lenses.feature_magnitudes(start, PLAN.action)
    values = [float(strength[place]) for place in sl.lenses.curriculum_order(start, PLAN.action)]
    curves = {"V": (np.arange(len(values)), values)}
    return _lines("Greedy order from the initial weights", "predicted rank", "initial V of the feature", curves)


def _dilution() -> Figure:
    lengths = (2, 4, 8, 16, 32, 64)
    found = [sl.lenses.dilution_bounds(length, 3.0, 3.0) for length in lengths]
    curves = {
        "largest ε": (lengths, [each["longest"] for each in found]),
        "law": (lengths, [each["law"] for each in found]),
    }
    return _lines("Attention off the two clauses, β = 3", "length", "ε", curves, xscale="log")


def _magnitudes() -> Figure:
    values = sl.lenses.feature_magnitudes(_descent().final, PLAN.action).flatten(0, 1)
    return _grid(values, "learnt features, cyclic group of order 4", "value", "class and neuron")


def _kept() -> list[Any]:
    descent, kind = _descent(), type(_descent().final)
    pairs = zip(descent.kept_actions, descent.kept_values)
    return [kind(torch.as_tensor(actions), torch.as_tensor(values)) for actions, values in pairs]


def _report() -> Figure:
    found = [sl.lenses.feature_report(each, PLAN.action, PLAN.clip) for each in _kept()]
    names = {"learnt": "learnt by some neuron", "single": "learnt by exactly one"}
    curves = {label: (_descent().kept_steps, [getattr(each, name) for each in found]) for name, label in names.items()}
    return _lines("Features along training", "step", "share of features", curves)


def _shape() -> Figure:
    ideal, noises, draws = ideal_features("C6", PLAN.clip), np.linspace(0, 1, 11), sl.rng(0)
    spread = torch.randn(ideal.actions.shape, generator=draws, dtype=torch.float64)
    shares = []
    for noise in noises:
        moved = type(ideal)(ideal.actions + noise * spread, ideal.values)
        shaped = sl.lenses.feature_shape(moved, "C6", PLAN.clip, 0.8, 0.8)
        shares.append(float(shaped.double().sum()) / 36)
    curves = {"share": (noises, shares)}
    return _lines("Ideal neurons with noise, tolerances 0.8", "noise", "features in shape", curves)


def _neurons() -> Figure:
    clip, betas = ReducedLego("C6").clip, np.linspace(0, 4, 21)
    actions, values = torch.tensor([[1, 2]]), torch.tensor([[0, 1]])  # 0 → 1 → 3
    rows = []
    for beta in betas:
        predicate, answer, other = attention_masses(2, 2, float(beta), float(beta))
        attention = torch.tensor([[other, predicate, other, answer]], dtype=torch.float64)
        rows.append(sl.lenses.lambda_oracle("C6", clip, actions, values, attention)[0])
    found = torch.stack(rows)
    curves = {
        "right pair": (betas, found[:, 3, 1]),
        "stale value": (betas, found[:, 2, 0]),
        "nothing right": (betas, found[:, 0, 5]),
    }
    return _lines("Λ of neurons at the second step", "β", "Λ", curves)


def _horizon() -> Figure:
    betas = np.linspace(2, 6, 17)
    curves = {
        name: (betas, [sl.lenses.length_horizon(name, float(beta)) for beta in betas]) for name in ("C4", "C6", "C12")
    }
    return _lines("Length at which the right neuron turns off", "β", "L*", curves, yscale="log")


def _phases() -> Figure:
    times = sl.lenses.phase_times(_descent(), PLAN.action)
    ranks = np.arange(len(times.order))
    curves = {"takes off": (ranks, times.taken_off), "reaches ½ log d": (ranks, times.reached)}
    return _lines("When features are learnt", "predicted rank", "step", curves)


def _power() -> Figure:
    starts = np.linspace(0.1, 0.4, 7)
    found = [sl.lenses.power_bounds(float(start), 4 * float(start), 4, 1e-3) for start in starts]
    curves = {name: (starts, [getattr(each, name) for each in found]) for name in ("low", "measured", "high")}
    return _lines("Time of x ← x + ηx³ to its fourfold", "start", "η × steps", curves, yscale="log")


def _diagonal() -> Figure:
    found = sl.lenses.q_diagonal(_ideal(), WORLD.variables)
    places = np.arange(WORLD.variables)
    curves = {"to predicates": (places, found.predicate), "to answers": (places, found.answer)}
    return _lines("Diagonals of Q, the ideal network", "variable", "entry", curves, ylim=(0, None))


def _retrieval() -> Figure:
    plan = RetrievalTraining(variables=10, neurons=4, lr=12.0, iterations=800)
    descent = train_retrieval(plan)
    growth = sl.lenses.retrieval_growth(plan, descent).growth
    curves = {f"variable {index}": (descent.eval_steps, growth[:, index]) for index in range(4)}
    return _lines("Growth of the copying neurons", "step", "Γ", curves)


LENSES: dict[str, Callable[[], Figure]] = {
    "answer-accuracy": _accuracy,
    "attention-concentration": _concentration,
    "block-norms": lambda: _grid(
        sl.lenses.block_norms(_ideal(), WORLD.variables), "blocks of Q, the ideal network", "key slot", "query slot"
    ),
    "collision-rates": _collisions,
    "confusion-events": _events,
    "curriculum-order": _order,
    "dilution-bounds": _dilution,
    "feature-magnitudes": _magnitudes,
    "feature-report": _report,
    "feature-shape": _shape,
    "lambda-oracle": _neurons,
    "length-horizon": _horizon,
    "phase-times": _phases,
    "power-bounds": _power,
    "q-diagonal": _diagonal,
    "retrieval-growth": _retrieval,
}
