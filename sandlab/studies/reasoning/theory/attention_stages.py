"""Attention learns in stages: first the predicate, then both, then their gap closes.

With ideal neurons the training of attention reduces to two numbers, β₃ (towards the needed predicate) and β₄ (towards
the answer itself). Exact gradient descent on the task of length 2, cyclic group of order 6, d = 200, B = 4 log d. The
first predicted step alone opens the gap between the two; trained on the second step only, they stay equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.reasoning.reduced import Descent, ReducedLego, enumerate_chains
from sandlab.studies.claims import Exact
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Study

KNOWN = {
    0: (4.523, 0.0, 0.0, 0.5, 0.0),
    20: (0.0275, 1.035, 0.667, 0.2956, 0.1282),
    100: (5.78e-3, 1.229, 0.849, 0.2579, 0.1391),
    500: (1.356e-3, 1.416, 1.044, 0.2232, 0.1427),
    2000: (4.05e-4, 1.581, 1.230, 0.1945, 0.1396),
    20_000: (5.97e-5, 1.877, 1.587, 0.1490, 0.1227),
}
"""Step → loss, β₃, β₄, ε, gap of the specification."""


@dataclass(frozen=True)
class Settings:
    """Gradient descent at a rate, on both steps of length 2 and on the second alone."""

    action: str = "C6"
    rate: float = 0.05
    iterations: int = 20_000
    second_only: int = 2000


@dataclass(frozen=True)
class DescentJob:
    action: str
    terms: tuple[tuple[int, int], ...]
    rate: float
    iterations: int


def descend(job: DescentJob) -> Descent:
    """The descent, logged often enough to hold every tabulated step."""
    return ReducedLego(job.action).descend(job.terms, lr=job.rate, steps=job.iterations, log=2500)


study = Study(
    "reasoning/attention-stages",
    title="The first step opens the gap between the two attentions, the second closes it",
    source=SOURCE,
    at="sections D.3 to D.5",
    quick=Settings(),
    full=Settings(second_only=20_000),
)


@dataclass(frozen=True)
class Results:
    both: Descent
    second: Descent

    def at(self, step: int) -> tuple[float, ...]:
        """Loss, β₃, β₄, ε and gap at a step."""
        place = int(np.abs(self.both.eval_steps - step).argmin())
        columns = (self.both.loss, self.both.beta3, self.both.beta4, self.both.left_over(), self.both.gap())
        return tuple(float(column[place]) for column in columns)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [
        DescentJob(settings.action, ((2, 1), (2, 2)), settings.rate, settings.iterations),
        DescentJob(settings.action, ((2, 2),), settings.rate, settings.second_only),
    ]
    both, second = lab.map(descend, jobs, label="attention stages")
    return Results(both, second)


@study.claim(Exact(below=1e-2), at="section 4.9", source="Specification")
def known_trajectory(results: Results) -> float:
    """The trajectory has the tabulated digits.

    Largest difference of loss, β₃, β₄, ε and gap at steps 0 to 20 000 from the specification's values.
    """
    return max(abs(a - b) for step, wanted in KNOWN.items() for a, b in zip(results.at(step), wanted))


@study.claim(Exact(above=0.0), at="D.3")
def gap_opens(results: Results) -> list[float]:
    """Attention to the predicate leads, and its lead grows at first.

    Gap at step 20, and its growth from step 20 to step 500.
    """
    return [results.at(20)[4], results.at(500)[4] - results.at(20)[4]]


@study.claim(Exact(above=0.0), at="D.5", paper="finally o(1)")
def gap_closes(results: Results) -> float:
    """Later the gap shrinks.

    Gap at step 500 minus gap at the end.
    """
    return results.at(500)[4] - float(results.both.gap()[-1])


@study.claim(Exact(below=1e-6), at="D.3")
def second_step_alone_opens_nothing(results: Results) -> float:
    """Without the loss of the first step the two attentions stay equal.

    Largest |gap|.
    """
    return float(np.abs(results.second.gap()).max())


@study.figure
def stages(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="Training of attention with ideal neurons, C6")
    steps = np.maximum(results.both.eval_steps, 0.8)
    axes[0].plot(results.both.beta3, results.both.beta4, label="both steps")
    axes[0].plot(results.second.beta3, results.second.beta4, label="second step only")
    axes[0].set(xlabel="β₃ (predicate)", ylabel="β₄ (answer)")
    axes[0].legend()
    axes[1].plot(steps, results.both.left_over(), label="ε (elsewhere)")
    axes[1].plot(steps, results.both.gap(), label="gap")
    axes[1].set(xscale="log", xlabel="step", ylabel="attention")
    axes[1].legend()
    axes[2].plot(steps, results.both.loss)
    axes[2].set(xscale="log", yscale="log", xlabel="step", ylabel="loss (nats)")
    return figure


@study.figure
def portrait(results: Results) -> Figure:
    """Loss contours and the descent direction over (β₃, β₄)."""
    model, chains = ReducedLego("C6"), enumerate_chains("C6", 2)
    grid = np.linspace(0, 2.2, 23)
    loss, field = np.zeros((23, 23)), np.zeros((23, 23, 2))
    for row, column in np.ndindex(23, 23):
        betas = torch.tensor([grid[column], grid[row]], dtype=torch.float64, requires_grad=True)
        value = model.loss(chains, 1, betas[0], betas[1]) + model.loss(chains, 2, betas[0], betas[1])
        loss[row, column] = float(value.detach())
        field[row, column] = -torch.autograd.grad(value, betas)[0].numpy()
    field /= np.linalg.norm(field, axis=-1, keepdims=True) + 1e-12
    figure, (axis,) = figures.new(width=5.4, height=4.2, title="Loss over (β₃, β₄), and where descent leads")
    shown = axis.contourf(grid, grid, np.log10(loss), levels=14, cmap="cividis")
    figure.colorbar(shown, ax=axis, label="log₁₀ loss")
    axis.quiver(grid[::2], grid[::2], field[::2, ::2, 0], field[::2, ::2, 1], color="white", width=0.003)
    axis.plot(results.both.beta3, results.both.beta4, color="#d55e00")
    axis.set(xlabel="β₃ (predicate)", ylabel="β₄ (answer)", xlim=(0, 2.2), ylim=(0, 2.2))
    return figure
