"""Several parents per position: each head of the first layer takes one of them.

Each token depends on several earlier ones; with one first-layer head per parent, each head takes one of them. Three
graphs: parents {⌊(i−1)/2⌋, i−1}, {i−1, i−2} and {i−1, i−2, i−3}; a kernel with Dirichlet rows is drawn for every
sequence, and the target is the distribution of the next token. Heads are matched to parents one to one so that the mean
attention on the matched parent is largest (Hungarian method); the last position, whose heads look at the parents of the
next token, is left out.

**Set-up.** Simplified transformer (the first layer attends by position alone, values and layer 2 trained), 3 states, 48
tokens, Dirichlet(0.3), one head more than parents, Adam 0.03, 2400 steps of 64 sequences. Full: 5000 steps, sixteen
seeds; and the source's disentangled transformer on the second graph (5 states, 32 tokens, Dirichlet(0.1), as many heads
as parents, Adam 0.01 with cosine decay and weight decay 10⁻⁴, 2¹⁴ steps of 512; the source takes 2¹⁶ of 1024).

**In the figure.** Attention of each head (rings: the parent it is matched to) and the score over training. It goes in
stages: one head finds a parent, then the next.

**What was learnt.** With the disentangled transformer at small size (12 to 32 tokens, some thousand steps of 128) heads
do not separate. Adam moves every entry of its score matrices at the same speed, also those that compare tokens, and
settles on patterns that mix parents at a loss between one parent's and two parents'; plain gradient descent heads for
the parents, but the readout becomes unstable before attention has grown. When attention may only depend on positions,
the same Adam separates the heads within a thousand steps. With exactly one head per parent, one seed in four stays for
thousands of steps where all heads share the parents found so far, a near-stationary point as in `ngrams/stages`; a
spare head leaves it. Nearly deterministic chains of fixed lags (α = 0.1) run into cycles, where a parent cannot be told
from the same position of an earlier round. On the first graph heads change parents at single positions, those that are
themselves parents of the next token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.head_matching import HeadMatch, match_heads
from sandlab.models.markov.disentangled import DisentangledTransformerConfig
from sandlab.models.ngrams.simplified import SimplifiedTransformerConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.markov._shared import KnownLosses, gap_left
from sandlab.studies.markov.graphs._shared import SOURCE, ring
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.causal_graphs import InContextDag, lag_parents, skip_parents


def matching_score(now: Snapshot) -> dict[str, list[float]]:
    """Mean attention of the best matching of the first layer's heads to the parents: "score"."""
    return {"score": [match.score for match in _matches(now)[1]]}


def matched_heads(now: Snapshot) -> dict[str, np.ndarray]:
    """Attention "pattern" of the first layer, and which of the "heads" looks at each parent."""
    pattern, matches = _matches(now)
    return {"pattern": pattern.cpu().numpy(), "heads": np.array([match.heads for match in matches])}


def _matches(now: Snapshot) -> tuple[torch.Tensor, list[HeadMatch]]:
    assert isinstance(now.world, InContextDag)
    # The last position looks at the parents of the next token; all others at their own.
    pattern = attention_maps(now.model, now.batch[:256].inputs)["layers.0.attention.pattern"][..., :-1, :-1]
    return pattern, [match_heads(member, now.world.parents) for member in pattern]


FINAL = (matched_heads, KnownLosses(("oracle", "uniform")))
GRAPHS = {"skip": skip_parents(48), "two lags": lag_parents(48, (1, 2)), "three lags": lag_parents(48, (1, 2, 3))}


@dataclass(frozen=True)
class Settings:
    """The simplified transformer on each of GRAPHS, then, in full, the source's model and size on the second one."""

    graphs: tuple[Experiment, ...]


def simplified(steps: int, seeds: int) -> tuple[Experiment, ...]:
    worlds = [InContextDag(3, parents, concentration=0.3) for parents in GRAPHS.values()]
    models = [SimplifiedTransformerConfig(vocab=3, length=48, heads=world.in_degree + 1) for world in worlds]
    training = Training(steps, 64, lr=0.03, evals=25, eval_examples=2048)
    return tuple(Experiment(*pair, training, seeds, (matching_score,), FINAL) for pair in zip(worlds, models))


QUICK = Settings(simplified(2400, seeds=4))
DISENTANGLED = Experiment(
    world=InContextDag(5, lag_parents(32, (1, 2)), concentration=0.1),
    # Zero initial weights would leave the heads equal.
    model=DisentangledTransformerConfig(vocab=5, length=32, heads=(2, 1), init_std=0.02),
    training=Training(2**14, 512, 0.01, weight_decay=1e-4, schedule="cosine", evals=25, eval_examples=2048),
    seeds=4,
    probes=(matching_score,),
    final=FINAL,
)
study = Study(
    "markov/multiple-parents",
    title="With several parents, each head takes one",
    source=f"{SOURCE}, §6",
    quick=QUICK,
    full=Settings((*simplified(5000, seeds=16), DISENTANGLED)),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Graph:
    """The parents of each position, and the runs on that graph."""

    parents: tuple[tuple[int, ...], ...]
    runs: Runs

    @property
    def score(self) -> np.ndarray:
        """Mean attention of the best matching at the end, for each seed."""
        return self.runs.metrics["score"][:, -1]


@dataclass(frozen=True)
class Results:
    """By name: GRAPHS, and "disentangled" where the source's model was trained."""

    graphs: dict[str, Graph]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    parents = [each.world.parents for each in settings.graphs if isinstance(each.world, InContextDag)]
    graphs = [Graph(*pair) for pair in zip(parents, lab.train(settings.graphs))]
    return Results(dict(zip((*GRAPHS, "disentangled"), graphs)))


@study.claim(Mean(above=0.8))
def skip(results: Results) -> np.ndarray:
    """With parents {⌊(i−1)/2⌋, i − 1} each parent has a first-layer head of its own.

    Mean attention of the best one-to-one matching of heads to parents.
    """
    return results.graphs["skip"].score


@study.claim(Mean(above=0.8))
def two_lags(results: Results) -> np.ndarray:
    """With parents {i − 1, i − 2} (order 2) each lag has a head of its own.

    Mean attention of the best one-to-one matching of heads to parents.
    """
    return results.graphs["two lags"].score


@study.claim(Mean(above=0.8))
def three_lags(results: Results) -> np.ndarray:
    """With three parents each lag has a head of its own.

    Mean attention of the best one-to-one matching of heads to parents.
    """
    return results.graphs["three lags"].score


@study.claim(Mean(below=0.25))
def near_optimal(results: Results) -> np.ndarray:
    """The two-parent models come close to the Bayes predictor.

    (loss − optimum)/(log S − optimum) at the end, mean over the two graphs, one value per seed.
    """
    return np.mean([gap_left(results.graphs[name].runs, "uniform") for name in ("skip", "two lags")], axis=0)


@study.claim(Mean(above=0.8), presets=("full",))
def disentangled(results: Results) -> np.ndarray:
    """Heads separate in the disentangled transformer too, where attention may depend on tokens.

    Mean attention of the best matching, parents {i − 1, i − 2}, source's model.
    """
    if "disentangled" not in results.graphs:
        raise NotMeasured("runs of the source's model")
    return results.graphs["disentangled"].score


@study.figure
def heads(results: Results) -> Figure:
    columns = 1 + max(graph.runs.final["heads"].shape[1] for graph in results.graphs.values())
    title = "Each first-layer head attends to one parent (rings: the parent it is matched to)"
    figure, axes = figures.new(columns, len(results.graphs), width=3.3, height=2.9, title=title)
    for row, (name, graph) in enumerate(results.graphs.items()):
        *maps, curve = axes[columns * row : columns * (row + 1)]
        final, best = graph.runs.final, int(graph.score.argmax())
        for axis in maps[final["heads"].shape[1] :]:
            axis.set_axis_off()
        for slot, (axis, head) in enumerate(zip(maps, final["heads"][best])):
            pattern = final["pattern"][best, head]
            figures.heatmap(axis, pattern, title=f"{name}: head {head}", x="key", y="query", low=0, high=1)
            parents = enumerate(graph.parents[: len(pattern)])
            ring(axis, [(child, each[slot]) for child, each in parents if each], size=5, width=1)
        figures.band(curve, graph.runs.eval_steps, graph.runs.metrics["score"])
        curve.axhline(0.8, color="#555555", linestyle=":", linewidth=1)
        curve.set(xlabel="step", ylim=(0, 1.02), title="on the matched parent")
    return figure
