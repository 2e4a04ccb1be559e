"""Labels at a few positions only: what is lost when most states are not revealed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Run, Task, by_task, measured
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study

SMALL = Run(length=10, steps=600)
LSTM = Run(model="lstm", length=10, steps=500, lr=3e-3)


@dataclass(frozen=True)
class Settings:
    """Seeds; the hard automaton, the easy one (none in a small study); shares of revealed labels; the two runs."""

    seeds: int = 3
    lstm_seeds: int = 2
    hard: str = "D6"
    easy: str = ""
    reveal: tuple[float, ...] = (1.0, 0.1, 0.02)
    run: Run = SMALL
    lstm: Run = LSTM


@study(
    "automata/incomplete",
    title="With few labels a transformer learns less of the group, an LSTM everything",
    source=f"{SOURCE}, Figures 7b and 19",
    quick=Settings(),
    full=Settings(
        seeds=4,
        lstm_seeds=2,
        hard="S5",
        easy="C2",
        reveal=(1.0, 0.25, 0.1, 0.05, 0.025, 0.01),
        run=Run(length=12, layers=6, width=128, steps=6000, tests=1024),
        lstm=Run(model="lstm", length=12, width=128, steps=4000, lr=3e-3, tests=1024),
    ),
    claims=[
        Claim(
            "degrades",
            "On the hard automaton a transformer loses accuracy when labels become rare.",
            f"{SOURCE}, Figure 7b",
            "accuracy with every label minus accuracy with the smallest share of labels, mean over seeds",
            Above(0.1),
            paper="a strong decline on S₅",
        ),
        Claim(
            "decreasing",
            "The fewer labels, the lower the accuracy.",
            f"{SOURCE}, Figure 7b",
            "smallest difference of mean accuracies from one share of labels to the next smaller",
            Above(-0.02),
            exact=True,
        ),
        Claim(
            "lstm",
            "An LSTM learns the automaton from however few labels.",
            f"{SOURCE}, Figure 7b",
            "smallest over shares of labels of the LSTM's best accuracy on the hard automaton",
            Above(0.97),
            exact=True,
            paper="100 %",
        ),
        Claim(
            "easy",
            "On parity few labels cost little.",
            f"{SOURCE}, Figure 19",
            "best accuracy on C₂ with every label minus best accuracy with a tenth of them",
            Below(0.1),
            exact=True,
            paper="about 0",
            presets=("full",),
        ),
    ],
)
def incomplete(config: Settings, lab: Lab) -> Outcome:
    """Each label counts in the loss with probability p, drawn anew for every word.

    The test is on all positions. The expected gradient is the same for every p; a smaller p makes it noisier. The
    transformer must find the automaton from scattered states; the LSTM's recurrence is the automaton's own shape.

    Published: length 100, S₅ with 16 layers and C₂, 25 runs. Quick: D₆ with 10 letters, 2 layers of width 64, 600
    batches of 64 words, p in {1, 0.1, 0.02}, 3 seeds. Full: S₅ and C₂ with 12 letters, 6 layers of width 128, 6000
    batches of 64 words, p from 1 to 0.01, 4 seeds; all p and both automata are one population.

    What to look for: the transformer's line falls to the right, the LSTM's does not. In the small study the
    transformer has not converged even with all labels, and rarer labels mean fewer of them in the same number of steps:
    it shows the price of a label, not a limit that training cannot pass.
    """
    names = [name for name in (config.hard, config.easy) if name]
    tasks = tuple(Task(name, reveal=share) for name in names for share in config.reveal)
    (found,) = by_task(lab, [replace(config.run, tasks=tasks)], config.seeds, "rare labels")
    (others,) = by_task(lab, [replace(config.lstm, tasks=tasks)], config.lstm_seeds, "rare labels, LSTM")
    scores, lstms = found["token"], others["token"]
    hard = [scores[Task(config.hard, reveal=share)] for share in config.reveal]
    means = np.array([values.mean() for values in hard])
    easy = {share: scores[Task(config.easy, reveal=share)].max() for share in config.reveal} if config.easy else {}
    measurements, lacking = measured(
        {
            "degrades": lambda: hard[0] - hard[-1],
            "decreasing": lambda: float((means[:-1] - means[1:]).min()),
            "lstm": lambda: min(float(lstms[Task(config.hard, reveal=share)].max()) for share in config.reveal),
            "easy": lambda: float(easy[1.0] - easy[0.1]),
        }
    )
    rows = [
        {
            "automaton": task.machine,
            "labels shown": task.reveal,
            "transformer, mean": float(scores[task].mean()),
            "transformer, best": float(scores[task].max()),
            "LSTM, mean": float(lstms[task].mean()),
        }
        for task in tasks
    ]
    return Outcome(
        measurements, {"labels": _draw(names, config.reveal, scores, lstms)}, {"labels": rows}, unmeasured=lacking
    )


def _draw(names: list[str], shares: tuple[float, ...], scores: Any, lstms: Any) -> Any:
    figure, axes = figures.new(columns=len(names), width=4.4, height=3.2)
    for axis, name in zip(axes, names):
        for label, table in (("transformer", scores), ("LSTM", lstms)):
            values = np.stack([table[Task(name, reveal=share)] for share in shares], 1)
            figures.band(axis, shares, values, label=label, marker="o")
        axis.set_xscale("log")
        axis.invert_xaxis()
        axis.set(title=name, xlabel="share of labels that count", ylabel="token accuracy", ylim=(None, 1.02))
        axis.legend()
    return figure
