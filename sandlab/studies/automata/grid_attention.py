"""Heads that detect walls: attention of transformers trained on bounded walks, next to that of the exact circuit.

The state of a bounded walk is the sum of the moves since the last time both walls mattered. The two-layer circuit
computes prefix sums with a uniform head, and finds the last visit of each height with sharp ones. Trained models find
something alike: heads of the first layer that average over the prefix, and later heads whose strongest weight is on
the latest visits of one wall.

Measured for every head on fresh walks: uniformity U = mean_t H(α_t)/log t; the share of rows (with a visit of that
wall in their prefix) whose largest weight is on a visit of the wall, next to the share of a random choice; the weight
on all visits of the wall; the weight on positions before the latest visit. What training adds is measured by the
weight: rows of untrained heads are nearly uniform, and the position of their maximum is an accident: on Grid₄ it was
on one wall in up to nine rows of ten.

Published: Grid₉, length 128, 4 layers, 8 heads. Quick: Grid₄, 32 letters, 2 layers, 4 heads of width 64, 800 batches
of 32 words, 4 seeds. Full: Grid₉, 64 letters, 4 layers, 8 heads, width 128, 5000 batches, 6 seeds.

What to look for: each map has queries downwards and keys to the right; the unused upper triangle shows the walk: white
columns are visits of the left wall, grey ones of the right. A blue frame marks the head that detects the left wall
best, a red one the right wall. Vertical stripes below white or grey columns are wall detectors. The last two maps
belong to the exact circuit, two of whose search heads find the walls in rows where the walker's height above or below
them is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.circuits.automata.gridworld import gridworld_circuit
from sandlab.learning.experiment import Experiment, Runs, Snapshot
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.automata.boundary_attention import attention_uniformity, boundary_scores, draw_boundaries
from sandlab.random import rng
from sandlab.studies.automata._shared import SOURCE, accuracy, automaton, recipe, transformer
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Grid
from sandlab.worlds.automata.machine import Automaton

WALLS, FRAMES = ("left", "right"), ("#1f6fb4", "#c0392b")
SCORES = ("score", "base", "weight", "leakage")


def wall_scores(now: Snapshot) -> dict[str, Tensor]:
    """Scores of every head on fresh walks (layer, head, wall), and its uniformity (layer, head): "uniform"."""
    world, walks = automaton(now), automaton(now).sample(64, rng=now.rng(5, "walks"))
    maps = list(attention_maps(now.model, walks.inputs, average=False).values())
    scores = [boundary_scores(pattern, walks.truth["states"], walls(world)) for pattern in maps]
    found = {name: torch.stack([score[name] for score in scores], 1) for name in SCORES}
    return found | {"uniform": torch.stack([attention_uniformity(pattern).mean(1) for pattern in maps], 1)}


def one_walk(now: Snapshot) -> dict[str, Tensor]:
    """Attention maps (layer, head, query, key) on the walk that visits both walls most evenly, and its states."""
    world, walks = automaton(now), automaton(now).sample(64, rng=now.rng(5, "walks"))
    shown = telling(walks.truth["states"], walls(world))
    maps = attention_maps(now.model, walks.inputs[shown : shown + 1], average=False).values()
    states = walks.truth["states"][shown].expand(len(now.model), -1)
    return {"maps": torch.stack([pattern[:, 0] for pattern in maps], 1).half(), "states": states}


def walls(world: Automaton) -> tuple[int, int]:
    return 0, world.states - 1


def telling(states: Tensor, ends: tuple[int, int]) -> int:
    """The walk that visits both walls most evenly."""
    visits = torch.stack([(states == wall).sum(1) for wall in ends])
    return int(visits.amin(0).argmax())


@dataclass(frozen=True)
class Settings:
    """A transformer on a walk."""

    walk: Experiment


def measured(experiment: Experiment) -> Settings:
    return Settings(replace(experiment, probes=(wall_scores,), final=(*experiment.final, one_walk)))


QUICK = measured(transformer(Grid(size=4, length=32), recipe(800, batch_size=32, lr=2e-3), seeds=4))
LARGE = transformer(Grid(size=9, length=64), recipe(5000, batch_size=32), seeds=6, layers=4, heads=8, width=128)
study = Study(
    "automata/grid-attention",
    title="Trained heads attend to visits of a wall, as those of the two-layer circuit do",
    source=SOURCE,
    at="Figures 6 and 17",
    quick=QUICK,
    full=measured(LARGE),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class CircuitAttention:
    """Share of maxima on each wall (head, wall) in the circuit's second layer; its maps on one walk, and the states."""

    score: np.ndarray
    maps: np.ndarray
    states: np.ndarray


@dataclass(frozen=True)
class CircuitWalks:
    """64 walks of a gridworld, drawn with this seed."""

    world: Automaton
    seed: int = 0


def circuit_attention(job: CircuitWalks) -> CircuitAttention:
    """Attention of the exact circuit; its padding is left out."""
    world, walks = job.world, job.world.sample(64, rng=rng(job.seed, "circuit walks"))
    states, inputs, length = walks.truth["states"], walks.inputs, walks.inputs.shape[1]
    pattern = list(attention_maps(gridworld_circuit(world, length), inputs, average=False).values())[1]
    seen, shown = pattern[..., -length:, -length:], telling(states, walls(world))
    score = boundary_scores(seen, states, walls(world))["score"]
    return CircuitAttention(score.numpy(), seen[shown].float().numpy(), states[shown].numpy())


@dataclass(frozen=True)
class Results:
    """The trained models, and the circuit on several sets of walks."""

    walk: Runs
    circuits: list[CircuitAttention]
    ends: tuple[int, int]

    @property
    def circuit(self) -> CircuitAttention:
        return self.circuits[0]

    def late(self, name: str, evaluation: int = -1) -> np.ndarray:
        """A score of all heads beyond the first layer (seed, head × wall)."""
        values = self.walk.metrics[name][:, evaluation, 1:]
        return values.reshape(len(values), -1)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = automaton(settings.walk)
    circuits = lab.map(circuit_attention, [CircuitWalks(world, seed) for seed in range(6)], label="circuit")
    return Results(lab.train(settings.walk, label="walks"), circuits, walls(world))


@study.claim(Mean(above=0.97), at="Figure 6", paper="about 100 %")
def learnt(results: Results) -> np.ndarray:
    """The walk is learnt in distribution.

    Mean token accuracy.
    """
    return accuracy(results.walk)


@study.claim(Mean(above=0.8), at="Figure 6")
def prefix_sum(results: Results) -> np.ndarray:
    """Models that solve the walk keep a head in the first layer that averages over the whole prefix: it counts.

    Largest uniformity of a first-layer head, mean over the seeds with an accuracy of at least 0.9. Heads of untrained
    models are nearly uniform as well: the claim is that training leaves one so.
    """
    return results.walk.metrics["uniform"][solved(results), -1, 0].max(-1)


def solved(results: Results) -> np.ndarray:
    """Which seeds solve the walk; there is nothing to compare when none does."""
    found = accuracy(results.walk) >= 0.9
    if not found.any():
        raise NotMeasured("no seed solves the walk")
    return found


@study.claim(Mean(above=0.05), at="Figures 6 and 17")
def detector(results: Results) -> np.ndarray:
    """Training makes heads of the later layers attend to visits of one wall.

    Largest attention on one wall's visits beyond that of a uniform head, trained minus untrained, mean over seeds.
    """
    before, after = ((results.late("weight", when) - results.late("base", when)).max(1) for when in (0, -1))
    return after - before


@study.claim(Mean(above=0.5), at="Figure 17")
def detector_share(results: Results) -> np.ndarray:
    """Some head beyond the first layer attends to a wall in most rows.

    Largest share of attention maxima on one wall over the heads with 0.05 more weight on it than a uniform head.
    """
    detects = results.late("weight") - results.late("base") > 0.05
    return np.where(detects, results.late("score"), 0.0).max(1)


@study.claim(Mean(above=0.05), at="Figures 6 and 17")
def both_walls(results: Results) -> np.ndarray:
    """There are such heads for each of the two walls.

    Attention on a wall's visits beyond that of a uniform head, best head of the less detected wall, trained minus
    untrained, mean over seeds.
    """
    gains = (results.walk.metrics["weight"] - results.walk.metrics["base"])[:, :, 1:].max((2, 3)).min(-1)
    return gains[:, -1] - gains[:, 0]


@study.claim(Mean(below=0.2), at="Figure 17")
def reset(results: Results) -> np.ndarray:
    """What came before the wall is not attended to.

    Attention of the best detector on positions before the latest visit of its wall, mean over seeds.
    """
    best = results.late("score").argmax(1)
    return results.late("leakage")[np.arange(len(best)), best]


@study.claim(Mean(above=0.5), at="Theorem 2")
def circuit(results: Results) -> list[float]:
    """In the exact circuit the detectors do nothing else.

    Largest share of attention maxima of a second-layer head of the circuit on one wall, mean over sets of walks.
    """
    solved(results)
    return [float(each.score.max()) for each in results.circuits]


@study.table
def heads(results: Results) -> Rows:
    last = {name: results.walk.metrics[name][:, -1] for name in (*SCORES, "uniform")}
    return [
        {"seed": seed, "layer": layer, "head": head, "uniformity": float(last["uniform"][seed, layer, head])}
        | {
            f"{wall} {name}": float(last[name][seed, layer, head, side])
            for side, wall in enumerate(WALLS)
            for name in SCORES
        }
        for seed, layer, head in np.ndindex(*last["uniform"].shape)
    ]


@study.figure
def maps(results: Results) -> dict[str, Figure]:
    """First-layer and last-layer heads of one model, then the circuit's best detector of each wall."""
    patterns, states = results.walk.final["maps"][0], results.walk.final["states"][0]
    count, best = patterns.shape[1], results.walk.metrics["score"][0, -1, -1].argmax(0).tolist()
    figure, axes = figures.new(columns=count + 1, rows=2, width=1.9, height=2.1)
    for row, layer in enumerate((0, len(patterns) - 1)):
        for head in range(count):
            frame = FRAMES[best.index(head)] if row == 1 and head in best else ""
            title = f"layer {layer + 1}, head {head + 1}"
            axis = axes[row * (count + 1) + head]
            draw_boundaries(axis, patterns[layer, head], states, results.ends, frame=frame, title=title)
    for row, wall in enumerate(WALLS):
        axis, shown = axes[row * (count + 1) + count], results.circuit.maps[results.circuit.score[:, row].argmax()]
        title = f"circuit, {wall} wall"
        draw_boundaries(axis, shown, results.circuit.states, results.ends, frame=FRAMES[row], title=title)
    return {"heads": figure}
