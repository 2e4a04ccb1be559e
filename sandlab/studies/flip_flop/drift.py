"""Attention drift: a head with linear positions leaves the right write as the input grows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab import figures
from sandlab.learning.training import train
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead
from sandlab.models.base import seeded
from sandlab.models.flip_flop.linear_memory import LinearPositionMemory
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.flip_flop.language import FlipFlopTransduction


@dataclass(frozen=True)
class Settings:
    """Trained at `length`, tested up to `longest`; positions are i/scale."""

    seeds: int = 4
    length: int = 48
    longest: int = 800
    idle: float = 0.7
    scale: float = 8.0
    width: int = 32
    steps: int = 1500
    lr: float = 3e-3


@dataclass(frozen=True)
class DriftJob:
    seed: int
    device: str
    length: int
    longest: int
    idle: float
    scale: float
    width: int
    steps: int
    lr: float


def head_of(model: LinearPositionMemory) -> LinearPositionHead:
    """The model's scores as token and position parts, in float64."""
    with torch.no_grad():
        token = model.embedding.weight.double()
        query, key = model.query.weight.double(), model.key.weight.double()
        parts = token @ query[:, :-1].mT, token @ key[:, :-1].mT
        return LinearPositionHead(*parts, query[:, -1], key[:, -1], model.config.scale)


def drift_run(job: DriftJob) -> dict[str, Any]:
    """Train one head; attention on a lone write and on the newer of two, and the failure lengths of its weights."""
    with seeded(job.seed):
        model = LinearPositionMemory(width=job.width, scale=job.scale).to(job.device)
    world = FlipFlopTransduction(length=job.length, idle=job.idle)
    test = world.sample(500, rng=rng(3, device=job.device))
    history = train(
        model, world, steps=job.steps, batch_size=64, rng=rng(job.seed, "data", device=job.device), lr=job.lr,
        schedule="cosine", warmup=50, evaluate=test, every=job.steps,
    )  # fmt: skip
    model = model.cpu()
    with torch.no_grad():
        error = float((model(test.inputs.cpu()).argmax(-1) != test.targets.cpu()).double().mean())
    head = head_of(model)
    predicted = [length or 10**6 for length in head.failure_lengths(100_000)]
    measured = [length or 10**6 for length in head.measured_failure_lengths(min(job.longest, 400))]
    lone = torch.zeros(job.longest, dtype=torch.long)
    lone[0] = 2
    pair = lone.clone()
    pair[0], pair[33] = 1, 2
    return {
        "error": error,
        "loss": float(history.loss[-50:].mean()),
        "curvature": head.curvature,
        "predicted": np.array(predicted),
        "measured": np.array(measured),
        "lone": _mass(model, lone, 0),
        "pair": _mass(model, pair, 33),
    }


def _mass(model: LinearPositionMemory, tokens: Tensor, place: int) -> np.ndarray:
    """Attention of every query from `place` on to the latest write there."""
    with torch.no_grad(), record(model, "pattern") as cache:
        model(tokens.unsqueeze(0))
    return cache["pattern"][0, place:, place].numpy()


@study(
    "flip-flop/drift",
    title="A head with linear positions lets go of the write it should hold",
    source=f"{SOURCE}, Figure 13 and Proposition 5",
    quick=Settings(),
    full=Settings(seeds=8, length=500, longest=834, idle=0.5, steps=4000),
    claims=[
        Claim(
            "learns",
            "The head answers its training lengths.",
            f"{SOURCE}, Figure 13",
            "error in distribution",
            Below(0.05),
        ),
        Claim(
            "curvature",
            "The trained curvature κ = W_Qp·W_Kp is not zero.",
            f"{SOURCE}, Prop. 5",
            "absolute value of κ",
            Above(1e-4),
        ),
        Claim(
            "drifts",
            "On long inputs attention leaves the only write.",
            f"{SOURCE}, Figure 13",
            "attention of the last query on the latest write, the smaller of the two inputs",
            Below(0.1),
        ),
        Claim(
            "held-at-first",
            "On short inputs it holds it.",
            f"{SOURCE}, Figure 13",
            "mean attention on the only write over the first quarter of the training length",
            Above(0.5),
        ),
        Claim(
            "predicted",
            "The trained weights say where each input fails first.",
            f"{SOURCE}, Prop. 5",
            "largest relative difference between predicted and measured failure length (both within 400)",
            Below(0.1),
        ),
    ],
)
def drift(config: Settings, lab: Lab) -> Outcome:
    """One head with positions i/C is trained on flip-flop inputs and then shown much longer ones.

    Two inputs, as published: a write followed by no-ops, and a second write 33 places later followed by no-ops. The
    curves show how much of its attention each query gives to the latest write: near the training length most of it,
    far beyond it almost none, because the score of a key grows with position at a rate set by κ and b. The dashed
    line is the length at which the trained weights predict that the wrong key overtakes.
    """
    jobs = [
        DriftJob(seed, lab.device, **{name: value for name, value in asdict(config).items() if name != "seeds"})
        for seed in range(config.seeds)
    ]
    found = lab.map(drift_run, jobs, label="heads with linear positions")
    early = max(2, config.length // 4)
    measurements = {
        "learns": [result["error"] for result in found],
        "curvature": [abs(result["curvature"]) for result in found],
        "drifts": [float(min(result["lone"][-1], result["pair"][-1])) for result in found],
        "held-at-first": [float(result["lone"][:early].mean()) for result in found],
        "predicted": [_relative_gap(result) for result in found],
    }
    return Outcome(measurements, {"drift": _draw(found, config)})


def _relative_gap(result: dict[str, Any]) -> float:
    both = [(p, m) for p, m in zip(result["predicted"], result["measured"]) if m < 10**6]
    return max((abs(p - m) / m for p, m in both), default=0.0)


def _draw(found: list[dict[str, Any]], config: Settings) -> Any:
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    for axis, name, title in zip(
        axes, ("lone", "pair"), ("one write, then no-ops", "a second write at 33, then no-ops")
    ):
        for place, result in enumerate(found[:8]):
            colour = figures.COLOURS[place % len(figures.COLOURS)]
            mass = result[name]
            axis.plot(np.arange(1, len(mass) + 1), mass, color=colour, linewidth=1.2, linestyle="-")
            length = result["predicted"][0]
            if name == "lone" and length < config.longest:
                axis.axvline(length, color=colour, linewidth=0.7, linestyle="--")
        axis.axvline(config.length, color="#555555", linewidth=1.0, linestyle=":")
        axis.annotate("training length ", (config.length, 0.97), fontsize=8, color="#555555", ha="right")
        axis.set(title=title, xlabel="queries after the latest write", ylabel="attention on it", ylim=(0, 1.05))
        axis.set_xscale("log")
    return figure
