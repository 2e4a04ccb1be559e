"""Heads that look for walls: attention of transformers trained on bounded walks, beside that of the exact circuit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.automata.gridworld import gridworld_circuit
from sandlab.learning.population import Population
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.automata.boundary_attention import attention_uniformity, boundary_scores, draw_boundaries
from sandlab.random import rng
from sandlab.studies.automata.runs import SOURCE, Run, Task, build, split, train_crowd
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study

WALLS = ("left", "right")
SMALL = Run(tasks=(Task("Grid4"),), length=32, batch_size=32, lr=2e-3, steps=800)
LARGE = Run(tasks=(Task("Grid9"),), length=64, batch_size=32, layers=4, heads=8, width=128, lr=1e-3, steps=5000)


@dataclass(frozen=True)
class Settings:
    """Seeds, and the run; its one task is a walk."""

    seeds: int = 4
    run: Run = SMALL


@study(
    "automata/grid-attention",
    title="Trained heads find the last wall, as the two-layer circuit does",
    source=f"{SOURCE}, Figures 6 and 17",
    quick=Settings(),
    full=Settings(seeds=6, run=LARGE),
    claims=[
        Claim(
            "learnt",
            "The walk is learnt in distribution.",
            f"{SOURCE}, Figure 6",
            "mean token accuracy",
            Above(0.97),
            paper="about 100 %",
        ),
        Claim(
            "prefix-sum",
            "A head of the first layer averages over the whole prefix: it counts.",
            f"{SOURCE}, Figure 6",
            "largest uniformity of a first-layer head, mean over seeds",
            Above(0.8),
        ),
        Claim(
            "detector",
            "Training makes heads of the later layers attend to visits of one wall.",
            f"{SOURCE}, Figures 6 and 17",
            "largest attention on one wall's visits beyond an even look's, trained minus untrained, mean over seeds",
            Above(0.05),
        ),
        Claim(
            "detector-share",
            "Some head of the last layer looks at a wall in most rows.",
            f"{SOURCE}, Figure 17",
            "largest share of attention maxima on one wall, mean over seeds",
            Above(0.5),
        ),
        Claim(
            "reset",
            "What came before the wall is not attended to.",
            f"{SOURCE}, Figure 17",
            "attention of the best detector on positions before the latest visit of its wall, mean over seeds",
            Below(0.2),
            presets=("full",),
        ),
        Claim(
            "circuit",
            "In the exact circuit the detectors do nothing else.",
            f"{SOURCE}, Theorem 2",
            "largest share of attention maxima of a second-layer head of the circuit on one wall",
            Above(0.5),
            exact=True,
        ),
    ],
)
def grid_attention(config: Settings, lab: Lab) -> Outcome:
    """A walker between two walls: where does attention look?

    The state of a bounded walk is the sum of the moves since the last time both walls mattered. The two-layer circuit
    computes prefix sums with a uniform head, and finds the last visit of each height with sharp ones. Trained models
    find something alike: heads of the first layer that average over the prefix, and later heads whose strongest weight
    lies on the latest visits of one wall.

    Measured for every head on fresh walks: uniformity U = mean_t H(α_t)/log t; the share of rows (with a visit of that
    wall behind them) whose largest weight lies on a visit of the wall, next to the share of a random look; the weight
    on all visits of the wall; the weight on positions before the latest visit. What training adds is measured by the
    weight: rows of untrained heads are nearly even, and where their maximum lies is an accident: with four places it
    lay on one wall in up to nine rows of ten.

    Published: Grid₉, length 128, 4 layers, 8 heads. Quick: Grid₄, 32 letters, 2 layers, 4 heads of width 64, 800
    batches of 32 words, 4 seeds. Full: Grid₉, 64 letters, 4 layers, 8 heads, width 128, 5000 batches, 6 seeds.

    What to look for: each map has queries downwards and keys to the right; the unused upper triangle shows the walk:
    white columns are visits of the left wall, grey ones of the right. A blue frame marks the head that detects the left
    wall best, a red one the right wall. Vertical stripes below white or grey columns are wall detectors. The last
    two maps belong to the exact circuit, two of whose search heads find the walls in rows where the walker's height
    above or below them is right.
    """
    results = lab.map(attend, split(config.run, config.seeds, lab.device), label="walks")
    tables = {
        name: np.concatenate([result[name] for result in results]) for name in ("token", "uniform", "before", *_SCORES)
    }
    late = slice(1, None)
    score, leakage = (tables[name][:, late] for name in ("score", "leakage"))
    flat = score.reshape(len(score), -1)
    best = flat.argmax(1)
    circuit = _circuit_scores(config.run)
    measurements = {
        "learnt": tables["token"],
        "prefix-sum": tables["uniform"][:, 0].max(-1),
        "detector": _excess(tables["weight"][:, late], tables["base"][:, late]) - tables["before"],
        "detector-share": flat.max(1),
        "reset": leakage.reshape(len(score), -1)[np.arange(len(best)), best],
        "circuit": float(circuit["score"].max()),
    }
    rows = [
        {
            "seed": seed, "layer": layer, "head": head, "uniformity": float(tables["uniform"][seed, layer, head]),
            **{f"{wall} {name}": float(tables[name][seed, layer, head, side])
               for side, wall in enumerate(WALLS) for name in _SCORES},
        }
        for seed, layer, head in np.ndindex(*tables["uniform"].shape)
    ]  # fmt: skip
    return Outcome(measurements, {"heads": _draw(results[0], circuit, config.run)}, {"heads": rows})


_SCORES = ("score", "base", "weight", "leakage")


def _excess(weight: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Per seed, the largest attention on one wall beyond that of a head that averages."""
    return (weight - base).reshape(len(weight), -1).max(1)


def attend(run: Run) -> dict[str, Any]:
    """Scores of every head (seed, layer, head, wall), and the maps of the first seed on one walk."""
    world = run.tasks[0].world(run.length)
    walls = (0, world.states - 1)
    test = world.sample(64, rng=rng(5, "walks", device=run.device))
    untrained = Population(lambda seed: build(run, [world]), seeds=run.seeds).to(run.device)
    before = list(attention_maps(untrained, test.inputs, average=False).values())[1:]
    population, found = train_crowd(run)
    maps = list(attention_maps(population, test.inputs, average=False).values())
    scores = [boundary_scores(pattern, test.truth["states"], walls) for pattern in maps]
    result = {name: torch.stack([score[name] for score in scores], 1).cpu().numpy() for name in _SCORES}
    shown = _telling(test.truth["states"], walls)
    first = [boundary_scores(pattern, test.truth["states"], walls) for pattern in before]
    weight, base = (torch.stack([score[name] for score in first], 1).cpu().numpy() for name in ("weight", "base"))
    return result | {
        "before": _excess(weight, base),
        "token": found["token"][0],
        "uniform": torch.stack([attention_uniformity(p).mean(1) for p in maps], 1).cpu().numpy(),
        "maps": torch.stack([pattern[0, shown] for pattern in maps]).float().cpu().numpy(),
        "states": test.truth["states"][shown].cpu().numpy(),
    }


def _circuit_scores(run: Run) -> dict[str, np.ndarray]:
    """The same scores for the second layer of the exact circuit, and its maps; its padding is left out."""
    world = run.tasks[0].world(run.length)
    circuit = gridworld_circuit(world, run.length)
    test = world.sample(64, rng=rng(5, "walks"))
    pattern = list(attention_maps(circuit, test.inputs, average=False).values())[1]
    seen = pattern[..., -run.length :, -run.length :]
    walls = (0, world.states - 1)
    shown = _telling(test.truth["states"], walls)
    return {
        "score": boundary_scores(seen, test.truth["states"], walls)["score"].numpy(),
        "maps": seen[shown].float().numpy(),
        "states": test.truth["states"][shown].numpy(),
    }


def _telling(states: torch.Tensor, walls: tuple[int, int]) -> int:
    """The walk that visits both walls most evenly."""
    visits = torch.stack([(states == wall).sum(1) for wall in walls])
    return int(visits.amin(0).argmax())


def _draw(result: dict[str, Any], circuit: dict[str, np.ndarray], run: Run) -> Any:
    """First-layer and last-layer heads of one model, then the circuit's best detector of each wall."""
    maps, states = result["maps"], result["states"]
    heads = maps.shape[1]
    walls = (0, int(run.tasks[0].world(run.length).states) - 1)
    figure, axes = figures.new(columns=heads + 1, rows=2, width=1.9, height=2.1)
    best = result["score"][0, -1].argmax(0)
    for layer, row in ((0, 0), (len(maps) - 1, 1)):
        for head in range(heads):
            frame = ""
            if row == 1 and head in best:
                frame = "#1f6fb4" if head == best[0] else "#c0392b"
            title = f"layer {layer + 1}, head {head + 1}"
            draw_boundaries(axes[row * (heads + 1) + head], maps[layer, head], states, walls, frame=frame, title=title)
    for row, wall in enumerate(WALLS):
        head = int(circuit["score"][:, row].argmax())
        axis = axes[row * (heads + 1) + heads]
        frame = ("#1f6fb4", "#c0392b")[row]
        title = f"circuit, {wall} wall"
        draw_boundaries(axis, circuit["maps"][head], circuit["states"], walls, frame=frame, title=title)
    return figure
