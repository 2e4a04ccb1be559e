"""What was learnt is an algorithm: it estimates kernels that training never showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Below, Claim
from sandlab.studies.markov.graph_runs import GraphRun, train_on_tree
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov.causal_graphs import chain_parents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent, Theorem 2"


@dataclass(frozen=True)
class Settings:
    """Chains of several lengths; trained on Dirichlet(α) kernels, tested on kernels of other concentrations."""

    seeds: int = 3
    states: int = 3
    lengths: tuple[int, ...] = (8, 16)
    concentration: float = 0.1
    tests: tuple[float, ...] = (0.3, 1.0, 3.0)
    steps: int = 4000
    batch: int = 64
    lr: float = 4.0


@study(
    "markov/causal-graph-ood",
    title="Trained on one prior, the transformer estimates kernels of any other",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, lengths=(10, 20, 40), steps=2**15, batch=256, lr=1.0),
    claims=[
        Claim(
            "out-of-distribution",
            "On kernels outside of the training prior the model errs hardly more than counting does.",
            SOURCE,
            "max_a |f(a) − P(a|s)| relative to that of the counting estimator, Dirichlet(1) kernels, longest chain",
            Below(1.2),
        ),
        Claim(
            "in-distribution",
            "Nor does it on kernels of the training prior.",
            SOURCE,
            "the same ratio on kernels of the training concentration",
            Below(1.4),
        ),
        Claim(
            "falls-with-length",
            "The error out of distribution falls with the length of the sequence.",
            SOURCE,
            "error at the longest chain minus error at the shortest, Dirichlet(1) kernels, seed by seed",
            Below(0.0),
        ),
    ],
)
def causal_graph_ood(settings: Settings, lab: Lab) -> Outcome:
    """A model that has learnt the graph has learnt to count, and counting works for kernels it has never seen.

    The theorem says that for any kernel with entries of at least γ/S the trained model's prediction approaches the
    kernel as sequences grow, ‖f − P̃(·|s_T)‖_∞ ≲ T^{−cγ}. The constant is not known; it can be tested that the error
    stays close to that of the counting estimator (counts plus the training concentration) on kernels of other priors,
    and that it falls with T.

    **Set-up.** `markov/causal-graph` on chains of length 8 and 16, trained on Dirichlet(0.1) kernels, which are nearly
    deterministic; tested on 4096 sequences with kernels from Dirichlet(0.3), Dirichlet(1) and Dirichlet(3), which are
    ever closer to uniform. Error: mean over sequences of max_a |f(a) − P(a|s_T)|.

    **In the figure.** The transformer's error follows the counting estimator's at every concentration, on both sides of
    the one it was trained on, and both are lower for the longer chain.
    """
    seeds = tuple(range(settings.seeds))
    runs = [
        GraphRun(
            chain_parents(length), seeds, lab.device, settings.states, settings.concentration, settings.steps,
            settings.batch, settings.lr, tests=settings.tests,
        )
        for length in settings.lengths
    ]  # fmt: skip
    results = lab.map(train_on_tree, runs, label="training")
    first, last = results[0], results[-1]
    own = f"errors {settings.concentration:g}"
    return Outcome(
        measurements={
            "out-of-distribution": (last["errors 1"][:-1] / last["errors 1"][-1]).tolist(),
            "in-distribution": (last[own][:-1] / last[own][-1]).tolist(),
            "falls-with-length": (last["errors 1"][:-1] - first["errors 1"][:-1]).tolist(),
        },
        figures={"errors": errors_figure(settings, results)},
    )


def errors_figure(settings: Settings, results: list[dict[str, Any]]) -> Figure:
    """Errors of the models and of counting by concentration of the tested kernels, a panel per length."""
    figure, axes = figures.new(
        len(results), width=4.0, height=3.4, title="Errors on kernels of other priors: model and counting"
    )
    tested = (settings.concentration, *settings.tests)
    with figures.style():
        for axis, length, result in zip(axes, settings.lengths, results):
            table = np.stack([result[f"errors {concentration:g}"] for concentration in tested], -1)
            figures.band(axis, tested, table[:-1], label="transformer", marker="o")
            axis.plot(tested, table[-1], "s--", color=figures.COLOURS[1], label="counting estimator")
            axis.axvline(settings.concentration, color="#888888", linestyle=":", linewidth=1)
            axis.set(xscale="log", xlabel="concentration of the tested kernels", title=f"T = {length}", ylim=(0, 0.6))
        axes[0].set_ylabel("mean of max |prediction − kernel|")
        axes[0].legend()
        axes[0].annotate("trained here", (settings.concentration, 0.02), fontsize=8, color="#666666")
    return figure
