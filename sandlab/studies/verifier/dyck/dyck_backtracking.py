"""Backtracking with a linear verifier repairs errors; an exact verifier repairs more.

Tokenwise rejection with backtracking: when the verifier rejects, the last B tokens are erased and rewritten.

The verifier is a linear probe of the model's last layer at the last token, trained on wrong and correct prefixes (see
verifier/representations). It is consulted after each sampled token, and below ½ the last B tokens are erased and B
most probable ones written, at most Q times.

First experiment: prompts are prefixes after which the model made an error; erasing may cut into them. Second: fresh
unfamiliar prompts (5 times 400 per model; full 10 000), which are never cut, Q = B = 4; every decoding has the same
random numbers. The trained verifier is compared with the exact one (a stack), a random one that rejects every second
token, the variant that resumes sampling after erasing, greedy decoding without any verifier, and a trained verifier
that has seen whole words: the others are shown prefixes of the lengths at which errors occur, and hardly ever a word
of 32 brackets, so that they may reject each one.

What to look for: the table of accuracies grows to the right; in the bars the trained verifier lies between plain
sampling and the exact verifier. Two controls say what the trained verifier contributes: the random verifier and greedy
decoding (dashed). Backtracking replaces sampled tokens by most probable ones, and where greedy completions have few
errors this alone repairs most. The exact verifier is better with few backtracks. If erasing may cut into fresh prompts,
false alarms make the model rewrite what it was given and the advantage is lost: the second experiment must leave
prompts alone.

**What was learnt.** At the published size (eight models), of 10 000 fresh prompts 113 are completed wrongly at top-p
0.9 and 164 at 1.0; with the trained verifier 74 and 84, with the exact one 72 and 72. Published: 240 and 462, 179 and
200. The gain is larger at 1.0 in seven of eight models. One model makes 472 errors in 10 000, the others 24 to 114; in
that one the exact verifier leaves a few errors more than the trained one. From error-inducing prefixes accuracy
increases with the stride and, on average, with the quota in every row and column, from 0.58 to 0.72 against 0.43
without; but after the first backtrack little changes (0.711, 0.715, 0.717 at stride 6): a model this sure writes the
same again, where the published one gains 0.3. The number of models was raised from three to eight after three had left
most verdicts open: the confidence in what then holds by a small margin is less than it says. Each completes 10 000
prompts once, where the source repeats one model's five times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, spread, table
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

LABELS = {
    "baseline": "no\nverifier", "no argmax": "trained,\nno argmax", "random": "random", "trained": "trained",
    "whole words": "trained,\nwhole words", "exact": "exact",
}  # fmt: skip

study = Study(
    "verifier/dyck-backtracking",
    title="Backtracking with a linear verifier repairs errors; an exact verifier repairs more",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, Tables 3.2 and 3.3)",
    **dyck.PRESETS,
)


@dataclass(frozen=True)
class Results:
    """Completions of error-inducing prefixes without and with backtracking, and of fresh prompts, for each model."""

    forced: dict[str, np.ndarray]
    quota: dict[str, np.ndarray]
    fresh: dyck.Fresh

    @property
    def alone(self) -> np.ndarray:
        """Accuracy of nucleus sampling from error-inducing prefixes."""
        return self.forced["nucleus 0.9"]

    @property
    def accuracy(self) -> np.ndarray:
        """Accuracy with backtracking (quota, stride, model)."""
        return np.array([[self.quota[f"accuracy {q},{b}"] for b in dyck.STRIDES] for q in dyck.QUOTAS])

    def errors_left(self, top_p: float) -> np.ndarray:
        """Errors on fresh prompts with the trained verifier divided by errors without."""
        return self.fresh.share(f"trained {top_p}") / self.fresh.share(f"baseline {top_p}")


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    models = dyck.train_models(settings, lab)
    return Results(
        table(models.measure(dyck.force_backtracking, "forced backtracking")),
        table(models.measure(dyck.vary_quota, "backtracking from error-inducing prefixes")),
        dyck.Fresh.completed(models, list(dyck.DECODINGS)),
    )


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.2", paper="0.273 to 0.590")
def helps(results: Results) -> np.ndarray:
    """From error-inducing prefixes, backtracking with the trained verifier beats nucleus sampling.

    Accuracy at stride 6 minus nucleus 0.9, smallest over quotas 1, 2, 4.
    """
    return (results.accuracy[:, -1] - results.alone).min(0)


@study.claim(Mean(above=0.3), source=THESIS, at="Table 3.2", paper="0.921 − 0.331", presets=("full",))
def helps_much(results: Results) -> np.ndarray:
    """With the largest quota and stride it does so by a wide margin.

    Accuracy with quota 4 and stride 6 minus nucleus 0.9.
    """
    return results.accuracy[-1, -1] - results.alone


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.2", paper="0.183 to 0.403")
def stride(results: Results) -> np.ndarray:
    """Erasing more tokens helps at every quota.

    Difference of accuracies between stride 6 and stride 2, smallest over quotas 1, 2, 4.
    """
    return (results.accuracy[:, -1] - results.accuracy[:, 0]).min(0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.2", paper="0.921 − 0.604")
def quota(results: Results) -> np.ndarray:
    """Backtracking more often helps at the largest stride.

    Accuracy with quota 4 minus quota 1 at stride 6.
    """
    return results.accuracy[-1, -1] - results.accuracy[0, -1]


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.2", paper="0.036", presets=("full",))
def every_step(results: Results) -> np.ndarray:
    """Accuracy increases with every step of quota and of stride.

    Smallest difference between neighbours in the rows and columns of the table.
    """
    return np.minimum(*(np.diff(results.accuracy, axis=axis).min((0, 1)) for axis in (0, 1)))


@study.claim(Mean(below=0.9), source=THESIS, at="Table 3.3", paper="179.4/240.0")
def unseen_nucleus(results: Results) -> np.ndarray:
    """On fresh prompts the trained verifier lowers the number of errors at top-p 0.9.

    Errors with backtracking divided by errors of nucleus sampling.
    """
    return results.errors_left(0.9)


@study.claim(Mean(below=0.9), source=THESIS, at="Table 3.3", paper="200.0/461.8")
def unseen_plain(results: Results) -> np.ndarray:
    """It does so at top-p 1.0.

    Errors with backtracking divided by errors of sampling.
    """
    return results.errors_left(1.0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.3", paper="57 % − 25 %")
def larger_for_plain(results: Results) -> np.ndarray:
    """The relative reduction is larger at top-p 1.0 than at 0.9.

    Reduction at 1.0 minus reduction at 0.9.
    """
    return results.errors_left(0.9) - results.errors_left(1.0)


@study.claim(Mean(above=0.0), at="ground-truth verifier")
def exact(results: Results) -> np.ndarray:
    """The exact verifier leaves fewer errors than the trained one.

    Share of fresh prompts completed wrongly, trained minus exact verifier, mean of top-p 0.9 and 1.0.
    """
    share = results.fresh.share
    return np.mean([share(f"trained {top_p}") - share(f"exact {top_p}") for top_p in (0.9, 1.0)], axis=0)


@study.table
def error_inducing_prefixes(results: Results) -> dict[str, Rows]:
    rows: Rows = []
    for cell, published in dyck.WITH_VERIFIER.items():
        accuracy = spread(results.quota[f"accuracy {cell}"])
        rows.append({"quota": cell[0], "stride": cell[2], "accuracy": accuracy, "published": f"{published:.3f}"})
    alone = f"{dyck.FORCED['nucleus 0.9']:.3f}"
    rows.append({"quota": "0", "stride": "", "accuracy": spread(results.alone), "published": alone})
    return {"error-inducing prefixes": rows}


@study.table
def fresh_prompts(results: Results) -> Rows:
    """Errors in 10 000 for each decoding, as published, and what they cost."""
    fresh = results.fresh
    return [
        {
            "decoding": name,
            "errors in 10 000": spread(1e4 * fresh.share(name), 1),
            "published": dyck.ERRORS.get(name, ""),
            "queries per prompt": f"{fresh.share(name, 'queries').mean():.2f}",
            "backtracks per prompt": f"{fresh.share(name, 'backtracks').mean():.2f}",
        }
        for name in fresh.counts
    ]


@study.figure
def backtracking(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, width=4.2, height=3.4)
    published = np.array(
        [[dyck.WITH_VERIFIER[f"{quota},{stride}"] for stride in dyck.STRIDES] for quota in dyck.QUOTAS]
    )
    here = (results.accuracy.mean(-1), "here", float(results.alone.mean()))
    for axis, (values, name, alone) in zip(axes, (here, (published, "published", dyck.FORCED["nucleus 0.9"]))):
        title = f"{name}: nucleus alone {alone:.3f}"
        figures.heatmap(
            axis, values, x="stride B", y="quota Q", title=title, low=0.3, high=1.0, numbers=True, bar=False
        )
        axis.set(xticks=range(len(dyck.STRIDES)), yticks=range(len(dyck.QUOTAS)))
        axis.set_xticklabels(map(str, dyck.STRIDES))
        axis.set_yticklabels(map(str, dyck.QUOTAS))
    dyck.top_p_bars(axes[2], results.fresh, LABELS)
    greedy = results.fresh.share("greedy").mean()
    axes[2].axhline(greedy, color="#555555", linestyle="--", linewidth=1, label="greedy decoding")
    axes[2].set_title("fresh prompts, Q = B = 4")
    axes[2].tick_params(axis="x", labelsize=7)
    axes[2].legend()
    return figure
