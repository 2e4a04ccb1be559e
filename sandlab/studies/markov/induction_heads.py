"""In-context bigrams: two layers find the induction head, one layer stays at counting single tokens.

In-context learning appears at depth two: the birth of an induction head. Every sequence has its own Markov chain with
rows drawn from a flat Dirichlet prior, so that the next token can only be predicted from what the sequence itself has
shown. The Bayes predictor counts pairs, (#(s → s') + 1)/(#s + S). One attention layer can count single tokens (the
unigram) but cannot ask what followed the current token earlier; two layers can: the first copies the previous token
into each position, the second looks for positions whose copy equals the current token and reads the token there.

**Set-up.** S = 3 states, length 48, fresh chains in every batch of 32; transformers of width 32 with one head per
layer, learned positions, feed-forward (GELU), layer norm; AdamW 5·10⁻³ with cosine, 1200 steps, 4 seeds. Full: length
100, width 64, 8000 steps of 128 sequences, 16 seeds.

**In the figures.** Losses: both depths drop to the unigram's line at once; only two layers go on, after a pause, to the
bigram's, which here is the optimum. Right: divergence of the two-layer model from each estimator: first uniform is
nearest, then unigram, then bigram. Attention: the first layer's diagonal is one step below the main one; the second
layer's last query attends to exactly those positions that follow an earlier occurrence of its token.

**What was learnt.** A feed-forward block and learned positions matter for the last per cent: without them the model
cannot take logarithms of frequencies nor shrink early counts, and stays a quarter of the gap above the optimum. One
layer creeps a quarter of the gap below the unigram's line (it can weigh tokens by the current one), and no further.
With the flat prior the pause at the unigram is short.

At full size (16 seeds, one H200, 2026-11-16) two layers come within 6·10⁻⁴ of the gap between unigram and optimum, the
first layer has 97 % of its attention on the previous token, the second 89 % on successors of the current one, and
every seed passes the unigram on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.distances import distances_to_estimators
from sandlab.lenses.markov.attention import induction_match
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, Share
from sandlab.studies.markov._shared import KnownLosses, cosine, gap_left
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.chain import InContextMarkov

ESTIMATORS = ("uniform", "unigram", "bigram")


def distances(now: Snapshot) -> dict[str, Tensor]:
    """Mean divergence of the predictions from each of ESTIMATORS: "distances"."""
    found = distances_to_estimators(now.model, now.world, now.batch)
    return {"distances": torch.stack([found[name] for name in ESTIMATORS], -1)}


def induction_attention(now: Snapshot) -> dict[str, Tensor]:
    """The matches of both layers ("previous", "successor"); for the figure the mean "maps" (member, layer, query, key),
    those of one "example", and its "tokens"."""
    tokens = now.batch.inputs[:64]
    patterns = torch.stack(list(attention_maps(now.model, tokens, average=False).values()), 1)[:, :, :, 0]
    shown = {"maps": patterns.mean(2), "example": patterns[:, :, 0], "tokens": tokens[:1].expand(len(patterns), -1)}
    return induction_match(now.model, tokens) | shown


@dataclass(frozen=True)
class Settings:
    """A fresh chain in every sequence; transformers of one and of two layers."""

    one_layer: Experiment
    two_layers: Experiment


def settings(length: int, width: int, training: Training, seeds: int) -> Settings:
    final = (induction_attention, KnownLosses(("oracle", *ESTIMATORS)))
    world = InContextMarkov(states=3, order=1, length=length)
    models = [TransformerConfig(3, length, layers, width=width) for layers in (1, 2)]
    return Settings(*(Experiment(world, model, training, seeds, (distances,), final) for model in models))


QUICK = settings(48, width=32, training=cosine(1200, 32, 5e-3, evals=50, eval_examples=256), seeds=4)
study = Study(
    "markov/induction-heads",
    title="Two layers learn to count pairs in context; one layer cannot",
    source="Edelman et al. 2024; Nichani, Damian & Lee 2024; Olsson et al. 2022 (induction heads)",
    tour=True,
    quick=QUICK,
    full=settings(100, width=64, training=cosine(8000, 128, 3e-3, evals=100, eval_examples=1024), seeds=16),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    one: Runs
    two: Runs

    @cached_property
    def levels(self) -> dict[str, float]:
        return {name: float(self.two.final[name][0]) for name in ESTIMATORS}

    @cached_property
    def drops(self) -> list[int]:
        """Of each two-layer seed: index of the first evaluation at which half of the gap is closed, or of the last."""
        closed = self.two.metrics["loss"] < (self.levels["unigram"] + self.levels["bigram"]) / 2
        return [int(row.argmax()) if row.any() else len(row) - 1 for row in closed]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    one, two = lab.train([settings.one_layer, settings.two_layers])
    return Results(one, two)


@study.claim(Mean(below=0.1))
def two_layers_optimal(results: Results) -> np.ndarray:
    """Two layers reach the Bayes-optimal in-context bigram predictor.

    Share of the gap between the unigram and the optimal loss that is left at the end.
    """
    return gap_left(results.two, "unigram")


@study.claim(Mean(above=0.5))
def one_layer_unigram(results: Results) -> np.ndarray:
    """One layer stays near the in-context unigram, which two layers leave.

    Share of the gap between the unigram and the optimal loss that is left at the end, one layer minus two, by seed.
    """
    return gap_left(results.one, "unigram") - gap_left(results.two, "unigram")


@study.claim(Mean(above=1.0))
def plateau(results: Results) -> list[float]:
    """On the way, two layers slow down at the unigram's loss.

    Evaluations with a loss within a tenth of the gap of the unigram's, before half of the gap is closed, over those of
    a straight line from the first loss to that point.
    """
    gap, found = results.levels["unigram"] - results.levels["bigram"], []
    for losses, end in zip(results.two.metrics["loss"], results.drops):
        near = np.abs(losses[: end + 1] - results.levels["unigram"]) < 0.1 * gap
        line = 0.2 * gap / max(losses[0] - losses[end], 0.2 * gap) * (end + 1)
        found.append(float(near.sum() / line))
    return found


@study.claim(Share(above=0.5))
def nearest_unigram(results: Results) -> list[bool]:
    """Before the drop the two-layer model's predictions are nearest to the unigram's.

    Share of seeds whose predictions come nearer to the unigram's than to uniform and bigram before the drop.
    """
    nearest = results.two.metrics["distances"].argmin(-1) == ESTIMATORS.index("unigram")
    return [bool(row[:end].any()) for row, end in zip(nearest, results.drops)]


@study.claim(Mean(above=0.5))
def previous_token(results: Results) -> np.ndarray:
    """The first layer of the trained model attends mostly to the previous token.

    Mean attention on the previous token in the first layer.
    """
    return results.two.final["previous"]


@study.claim(Mean(above=0.8))
def previous_token_sharp(results: Results) -> np.ndarray:
    """The first layer of the trained model attends to little but the previous token.

    Mean attention on the previous token in the first layer.
    """
    return results.two.final["previous"]


@study.claim(Mean(above=0.7))
def successor(results: Results) -> np.ndarray:
    """The second layer attends to the tokens that followed earlier occurrences of the current token.

    One minus the mean total variation between its attention and the uniform distribution on these tokens.
    """
    return results.two.final["successor"]


@study.figure
def losses(results: Results) -> Figure:
    title = "Two layers pass the unigram and reach the bigram; one layer does not"
    figure, axes = figures.new(2, width=5.4, height=3.6, title=title)
    steps, metrics = results.two.eval_steps, results.two.metrics
    figures.band(axes[0], steps, results.one.metrics["loss"], label="one layer", color=figures.COLOURS[1])
    figures.band(axes[0], steps, metrics["loss"], label="two layers", color=figures.COLOURS[0])
    figures.levels(axes[0], dict(zip(("uniform", "unigram", "bigram = optimum"), results.levels.values())))
    axes[0].set(xlabel="step", ylabel="loss (nats)", title="held-out loss")
    axes[0].set_ylim(bottom=results.levels["bigram"] - 0.02)
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.6, 0.92))
    for index, name in enumerate(ESTIMATORS):
        figures.band(axes[1], steps, metrics["distances"][..., index], label=name)
    axes[1].set(xlabel="step", ylabel="KL(estimator ‖ model), nats", yscale="log", title="what two layers compute")
    axes[1].legend(loc="lower left")
    return figure


@study.figure
def attention(results: Results) -> Figure:
    title = "The induction head: look back one step, then find the same token"
    figure, axes = figures.new(3, width=4.3, height=3.7, title=title)
    final = results.two.final
    for axis, pattern, layer, high in zip(axes, final["maps"][0], ("first", "second"), (1, 0.2)):
        title = f"{layer} layer (mean)"
        figures.heatmap(axis, pattern, title=title, x="key position", y="query position", low=0, high=high)
    weights, tokens = final["example"][0, 1, -1], final["tokens"][0]
    hit = np.concatenate([[-1], tokens[:-1]]) == tokens[-1]
    positions, label = np.arange(len(tokens)), f"after an earlier {tokens[-1]}"
    axes[2].bar(positions[hit], weights[hit], color=figures.COLOURS[1], label=label)
    axes[2].bar(positions[~hit], weights[~hit], color=figures.COLOURS[6], label="elsewhere")
    axes[2].set(title="second layer, last query of one example", xlabel="key position", ylabel="attention")
    axes[2].set_ylim(0, 1.25 * axes[2].get_ylim()[1])
    axes[2].legend(fontsize=8, loc="upper left")
    return figure
