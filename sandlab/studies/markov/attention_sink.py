"""A head that copies has nothing to do on most tokens, and rests its attention on the first one.

Bigram text in which a few trigger tokens are followed by a copy of the token before them. A head that performs the
copying has nothing to do on all other tokens, but softmax must put its weight somewhere: it rests on the start token,
whose value shrinks until resting there adds nothing. Quick: 20 states of which 3 are triggers, 32 tokens, one layer
with one head of width 32, four seeds; full: 64 states, 128 tokens, 10 000 steps.

**In the figure.** Left: attention on one example, rings where a trigger must look (the token before it). Middle: mean
attention to the start token on triggers and on all others over training. Right: norms of values.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.markov.attention import attention_on_start
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean
from sandlab.studies.markov._shared import KnownLosses, cosine, gap_left
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.markov.bigram_text import BigramBackcopy


def start_token(now: Snapshot) -> dict[str, Tensor]:
    """Attention to the start token and norms of values, as in `StartToken`."""
    found = attention_on_start(now.model, now.batch.inputs, now.batch.truth["is_trigger"])
    return {name: getattr(found, name) for name in ("dormant", "active", "value", "others", "stream")}


def example(now: Snapshot) -> dict[str, Tensor]:
    """Attention ("pattern") on one example, and where its "triggers" are."""
    batch = now.batch[:1]
    pattern = attention_on_start(now.model, batch.inputs, batch.truth["is_trigger"]).pattern[:, 0]
    return {"pattern": pattern, "triggers": batch.truth["is_trigger"].expand(len(pattern), -1)}


def experiment(states: int, length: int, width: int, training: Training, seeds: int) -> Experiment:
    """Bigram text with copying triggers; one-layer transformers with one head."""
    world = BigramBackcopy(states, triggers=3, length=length)
    model = TransformerConfig(world.vocab, length, layers=1, heads=1, width=width, mlp="relu")
    final = (example, KnownLosses(("oracle", "bigram")))
    return Experiment(world, model, training, seeds, probes=(start_token,), final=final)


QUICK = experiment(20, length=32, width=32, training=cosine(1500, 64, 5e-3, evals=25, eval_examples=256), seeds=4)
study = Study(
    "markov/attention-sink",
    title="A copying head rests on the first token",
    source="Guo et al. 2024, Active-dormant attention heads: mechanistically demystifying extreme-token phenomena",
    quick=QUICK,
    full=experiment(64, length=128, width=64, training=cosine(10000, 128, 2e-3, evals=25, eval_examples=256), seeds=16),
    null=untrained(QUICK),
)


@study.collect
def collect(settings: Experiment, lab: Lab) -> Runs:
    return lab.train(settings)


@study.claim(Mean(above=0.5))
def sink(runs: Runs) -> np.ndarray:
    """On tokens where there is nothing to copy the head attends to the start token.

    Mean attention to the start token on non-triggers.
    """
    return runs.metrics["dormant"][:, -1]


@study.claim(Mean(below=-0.2))
def active(runs: Runs) -> np.ndarray:
    """On triggers it does so less.

    Mean attention to the start token on triggers minus that on non-triggers.
    """
    return (runs.metrics["active"] - runs.metrics["dormant"])[:, -1]


@study.claim(Mean(below=0.5))
def value_drain(runs: Runs) -> np.ndarray:
    """The value of the start token becomes small, so that resting there does nothing.

    Norm of the start token's value relative to the mean of the others.
    """
    return (runs.metrics["value"] / runs.metrics["others"])[:, -1]


@study.claim(Mean(below=0.2))
def learns(runs: Runs) -> np.ndarray:
    """Meanwhile the model learns both the bigram distribution and the copying rule.

    (loss − optimum)/(bigram loss − optimum) at the end.
    """
    return gap_left(runs, "bigram")


@study.table
def norms(runs: Runs) -> Rows:
    ratios = zip(runs.seeds, value_drain(runs), runs.metrics["stream"][:, -1])
    value, stream = (f"start token's {name} over the others'" for name in ("value", "stream"))
    return [{"seed": seed, value: float(first), stream: float(second)} for seed, first, second in ratios]


@study.figure
def curves(runs: Runs) -> dict[str, Figure]:
    figure, axes = figures.new(3, width=4.4, height=3.6, title="Nothing to copy: the head rests on the start token")
    steps, final, title = runs.eval_steps, runs.final, "one example (triggers marked)"
    figures.heatmap(axes[0], final["pattern"][0], title=title, x="key", y="query", low=0, high=1)
    rows = np.flatnonzero(final["triggers"][0])
    axes[0].plot(rows - 1, rows, "o", color="none", markeredgecolor=figures.COLOURS[1], markersize=6)
    figures.band(axes[1], steps, runs.metrics["dormant"], label="on other tokens")
    figures.band(axes[1], steps, runs.metrics["active"], label="on triggers")
    axes[1].set(xlabel="step", ylim=(0, 1.02), title="attention to the start token")
    figures.band(axes[2], steps, runs.metrics["value"], label="start token")
    figures.band(axes[2], steps, runs.metrics["others"], label="other tokens")
    axes[2].set(xlabel="step", title="norm of the value", ylim=(0, None))
    axes[1].legend()
    axes[2].legend()
    return {"sink": figure}
