"""On Dyck words greedy rewriting beats sampling again, which helps as well.

After erasing B tokens, rewrite them greedily (the algorithm) or go on sampling (the ablation)?

Fresh unfamiliar prompts, Q = B = 4, trained verifier. Sampling again after an error draws from the same distribution
that led to it; and every new alarm spends quota until none is left.

What to look for: the middle bars stay near the left ones, the right ones do not.

**What was learnt.** At the published size (eight models), greedy rewriting is better than sampling again, as published
(74 and 87 errors in 10 000 at top-p 0.9, 84 and 116 at 1.0), but sampling again also helps: 113 and 164 without a
verifier. In the source it does not.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, spread
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

LABELS = {"baseline": "no verifier", "no argmax": "erase,\nthen sample", "trained": "erase,\nrewrite greedily"}
NAMES = [f"{name} {top_p}" for name in LABELS for top_p in (0.9, 1.0)]

study = Study(
    "verifier/dyck-no-argmax",
    title="On Dyck words greedy rewriting beats sampling again, which helps as well",
    source=QUERIES,
    at=f"ablation ({THESIS}, Table 3.16)",
    **dyck.PRESETS,
)


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> dyck.Fresh:
    return dyck.Fresh.completed(dyck.train_models(settings, lab), NAMES)


@study.claim(Mean(below=1.0), source=THESIS, at="Table 3.16", paper="179.4/245.8")
def argmax_nucleus(results: dyck.Fresh) -> np.ndarray:
    """Without the greedy rewriting more errors remain at top-p 0.9.

    Errors with rewriting divided by errors without.
    """
    return results.share("trained 0.9") / results.share("no argmax 0.9")


@study.claim(Mean(below=1.0), at="ablation")
def argmax_plain(results: dyck.Fresh) -> np.ndarray:
    """The same holds at top-p 1.0.

    Errors with rewriting divided by errors without.
    """
    return results.share("trained 1.0") / results.share("no argmax 1.0")


@study.claim(
    Mean(between=(0.9, 1.1)),
    source=THESIS,
    at="Tables 3.3 and 3.16",
    paper="245.8/240.0",
    note="Resampling repairs what was an accident of sampling; how many errors are depends on the model's confidence.",
)
def no_better(results: dyck.Fresh) -> np.ndarray:
    """Without it, backtracking is no better than nucleus sampling.

    Errors without rewriting divided by errors of nucleus sampling, top-p 0.9; 2 for models that err on more than half
    of the prompts.
    """
    nucleus = results.share("baseline 0.9")
    return np.where(nucleus < 0.5, results.share("no argmax 0.9") / nucleus, 2.0)


@study.table
def errors_on_fresh_prompts(results: dyck.Fresh) -> Rows:
    return [
        {
            "decoding": name,
            "errors in 10 000": spread(1e4 * results.share(name), 1),
            "published": dyck.ERRORS.get(name, ""),
        }
        for name in NAMES
    ]


@study.figure
def rewriting(results: dyck.Fresh) -> Figure:
    figure, (axis,) = figures.new(width=5.0, height=3.1)
    dyck.top_p_bars(axis, results, LABELS)
    axis.legend()
    return figure
