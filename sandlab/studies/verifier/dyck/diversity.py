"""Backtracking does not make completions much less varied.

Ten completions of each of some fresh prompts: how many are distinct?

40 prompts per model (full 100), of 16 to 31 brackets. Backtracking with Q = B = 4 at top-p 1.0 against plain sampling
at 0.9 and 1.0. Distinct wrong completions count as well, which favours plain sampling: part of its variety is errors.

What to look for: with the exact verifier, which rejects only what is wrong, the distribution is that of sampling. A
trained verifier with false alarms makes the model write greedily, and variety is lost: what costs variety is the
verifier's error, not backtracking.

**What was learnt.** With small models, the trained verifier raises an alarm at one correct prefix in ten to one in
three (see verifier/representations), and costs 1.2 to 3.5 of 7 distinct completions; the exact one 0.1 to 0.9.

For prompts of 25 to 31 brackets, the lengths given in the source, ten samples of the true distribution itself have 3.0
distinct completions on average; its 5.84 belongs to shorter prompts, such as 16 to 31 (6.3), which the claims are
about. The table has both. At the published size (eight models) 16 to 31 give 6.49 for sampling, 6.39 with the exact and
5.85 with the trained verifier: the published differences. The source prints "standard error" next to its means; by size
(3.28 over 100 prompts) it is the standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Writer
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

LABELS = {
    "trained 1.0": "backtracking, trained verifier",
    "exact 1.0": "backtracking, exact verifier",
    "baseline 0.9": "sampling, top-p 0.9",
    "baseline 1.0": "sampling, top-p 1.0",
}
# Table 3.5: distinct completions among ten, mean and standard deviation over 100 prompts.
PUBLISHED = {"trained 1.0": "5.52 ± 3.28", "baseline 0.9": "5.47 ± 3.06", "baseline 1.0": "5.84 ± 3.29"}

study = Study(
    "verifier/diversity",
    title="Backtracking does not make completions much less varied",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, Table 3.5)",
    **dyck.PRESETS,
)


@dataclass(frozen=True)
class Distinct:
    """Distinct completions among ten, for each prompt of 16 to 31 and of 25 to 31 brackets."""

    longer: list[int]
    short: list[int]


def count_distinct(job: dyck.Job, writer: Writer) -> Distinct:
    count, decoding = job.settings.diverse, job.decoding
    sources = [rng(job.seed, "diverse", device=job.device) for _ in range(2)]
    prompts = [*dyck.draw_prompts(count, sources[0], low=16), *dyck.draw_prompts(count, sources[1], low=25)]
    tenfold = [prompt for prompt in prompts for _ in range(10)]
    done = writer.complete(tenfold, decoding.decoder(), "diverse", verifier=decoding.consulted)
    strings = [tuple(done.string(row)) for row in range(len(done))]
    counts = [len(set(strings[start : start + 10])) for start in range(0, len(strings), 10)]
    return Distinct(counts[:count], counts[count:])


@dataclass(frozen=True)
class Results:
    """Name of the decoding → distinct completions of each model."""

    distinct: dict[str, list[Distinct]]

    def mean(self, name: str) -> np.ndarray:
        return np.array([np.mean(each.longer) for each in self.distinct[name]])


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    found = dyck.train_models(settings, lab).decode(
        count_distinct, [dyck.DECODINGS[name] for name in LABELS], "diversity"
    )
    return Results(dict(zip(LABELS, found)))


def lost(results: Results, name: str) -> np.ndarray:
    """Distinct completions more than those of plain sampling; 10 where all of these are different already."""
    plain = results.mean("baseline 1.0")
    return np.where(plain < 9.5, results.mean(name) - plain, 10.0)


@study.claim(
    Mean(between=(-1.0, 1.0)),
    source=THESIS,
    at="Table 3.5",
    paper="5.52 − 5.84",
    note="Each false alarm of the trained verifier replaces sampled tokens by the most probable ones.",
)
def trained(results: Results) -> np.ndarray:
    """Ten completions with the trained verifier have about as many distinct ones as ten plain samples.

    Mean number of distinct completions with backtracking minus plain sampling, both at top-p 1.0; 10 for models whose
    plain samples are nearly all different, as those of an untrained model are.
    """
    return lost(results, "trained 1.0")


@study.claim(Mean(between=(-1.0, 1.0)), source=THESIS, at="Table 3.5", paper="5.52 − 5.84 (trained verifier)")
def exact(results: Results) -> np.ndarray:
    """The same holds with the exact verifier.

    Mean number of distinct completions with backtracking minus plain sampling, both at top-p 1.0; 10 for models whose
    plain samples are nearly all different.
    """
    return lost(results, "exact 1.0")


@study.table
def distinct_of_ten(results: Results) -> dict[str, Rows]:
    def moments(counts: list[int]) -> str:
        return f"{np.mean(counts):.2f} ± {np.std(counts, ddof=1):.2f}"

    rows: Rows = [
        {
            "decoding": name,
            "16 to 31 brackets": moments([count for each in models for count in each.longer]),
            "25 to 31 brackets": moments([count for each in models for count in each.short]),
            "published": PUBLISHED.get(name, ""),
        }
        for name, models in results.distinct.items()
    ]
    return {"distinct of ten, mean ± standard deviation": rows}


@study.figure
def diversity(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=5.2, height=3.1)
    for shift, (name, models) in zip((-0.3, -0.1, 0.1, 0.3), results.distinct.items()):
        counts = np.concatenate([each.longer for each in models])
        shares = [float((counts == number).mean()) for number in range(1, 11)]
        axis.bar(np.arange(1, 11) + shift, shares, 0.19, label=f"{LABELS[name]}: mean {counts.mean():.2f}")
    axis.set(xlabel="distinct completions among ten", ylabel="share of prompts", xticks=range(1, 11))
    axis.legend()
    return figure
