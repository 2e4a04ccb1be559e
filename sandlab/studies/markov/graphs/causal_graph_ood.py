"""What was learnt is an algorithm: it estimates kernels that training never showed.

A model that has learnt the graph has learnt to count, and counting works for kernels it has never seen. The theorem
says that for any kernel with entries of at least γ/S the trained model's prediction approaches the kernel as sequences
grow, ‖f − P̃(·|s_T)‖_∞ ≲ T^{−cγ}. The constant is not known; it can be tested that the error stays close to that of the
counting estimator (counts plus the training concentration) on kernels of other priors, and that it decreases with T.

**Set-up.** `markov/causal-graph` on chains of length 8 and 16, trained on Dirichlet(0.1) kernels, which are nearly
deterministic; tested on 4096 sequences with kernels from Dirichlet(0.3), Dirichlet(1) and Dirichlet(3), which are ever
closer to uniform. Error: mean over sequences of max_a |f(a) − P(a|s_T)|.

**In the figure.** The transformer's error follows the counting estimator's at every concentration, on both sides of
the one it was trained on, and both are lower for the longer chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot
from sandlab.lenses.markov.chains import prior_errors
from sandlab.studies.claims import Mean
from sandlab.studies.markov.graphs._shared import SOURCE, joint_experiment
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents

CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0)
"""Of the tested kernels; the first is the one of training."""


def kernel_errors(now: Snapshot) -> dict[str, Tensor]:
    """Mean of max_a |f(a) − P(a|s_T)| for each of CONCENTRATIONS: "model errors", "counting errors"."""
    assert isinstance(now.world, InContextTree)
    model, counting = prior_errors(now.model, now.world, CONCENTRATIONS, rng=now.rng(0, "test"))
    return {"model errors": model, "counting errors": counting.expand_as(model)}


@dataclass(frozen=True)
class Settings:
    """Chains of several lengths, shortest first; trained on Dirichlet(0.1) kernels, tested on CONCENTRATIONS."""

    chains: tuple[Experiment, ...]


def settings(lengths: tuple[int, ...], seeds: int, steps: int, batch_size: int, lr: float) -> Settings:
    chains = [joint_experiment(chain_parents(n), seeds, steps=steps, batch_size=batch_size, lr=lr) for n in lengths]
    return Settings(tuple(replace(chain, final=(kernel_errors,)) for chain in chains))


QUICK = settings((8, 16), seeds=3, steps=4000, batch_size=64, lr=4.0)
study = Study(
    "markov/causal-graph-ood",
    title="Trained on one prior, the transformer estimates kernels of any other",
    source=f"{SOURCE}, Theorem 2",
    quick=QUICK,
    full=settings((10, 20, 40), seeds=8, steps=2**15, batch_size=256, lr=1.0),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Length → runs, shortest first."""

    chains: dict[int, Runs]

    def errors(self, kind: str, index: int, concentration: float) -> np.ndarray:
        """Error of the "model" or of "counting", for each seed, on one chain (0: shortest, −1: longest)."""
        return list(self.chains.values())[index].final[f"{kind} errors"][:, CONCENTRATIONS.index(concentration)]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    lengths = [each.world.length for each in settings.chains if isinstance(each.world, InContextTree)]
    return Results(dict(zip(lengths, lab.train(settings.chains))))


@study.claim(Mean(below=1.2))
def out_of_distribution(results: Results) -> np.ndarray:
    """On kernels outside of the training prior the model errs hardly more than counting does.

    max_a |f(a) − P(a|s)| relative to that of the counting estimator, Dirichlet(1) kernels, longest chain.
    """
    return results.errors("model", -1, 1.0) / results.errors("counting", -1, 1.0)


@study.claim(Mean(below=1.4))
def in_distribution(results: Results) -> np.ndarray:
    """Nor does it on kernels of the training prior.

    The same ratio on kernels of the training concentration.
    """
    return results.errors("model", -1, 0.1) / results.errors("counting", -1, 0.1)


@study.claim(Mean(below=-0.02), note="the bound is ours, chosen with quick results and the null at hand")
def falls_with_length(results: Results) -> np.ndarray:
    """The error out of distribution falls with the length of the sequence.

    Error at the longest chain minus error at the shortest, Dirichlet(1) kernels, seed by seed.
    """
    return results.errors("model", -1, 1.0) - results.errors("model", 0, 1.0)


@study.figure
def errors(results: Results) -> Figure:
    title = "Errors on kernels of other priors: model and counting"
    figure, axes = figures.new(len(results.chains), width=4.0, height=3.4, title=title)
    for axis, (length, runs) in zip(axes, results.chains.items()):
        figures.band(axis, CONCENTRATIONS, runs.final["model errors"], label="transformer", marker="o")
        counting = runs.final["counting errors"][0]
        axis.plot(CONCENTRATIONS, counting, "s--", color=figures.COLOURS[1], label="counting estimator")
        axis.axvline(CONCENTRATIONS[0], color="#888888", linestyle=":", linewidth=1)
        axis.set(xscale="log", xlabel="concentration of the tested kernels", title=f"T = {length}", ylim=(0, 0.6))
    axes[0].set_ylabel("mean of max |prediction − kernel|")
    axes[0].legend()
    axes[0].annotate("trained here", (CONCENTRATIONS[0], 0.02), fontsize=8, color="#666666")
    return figure
