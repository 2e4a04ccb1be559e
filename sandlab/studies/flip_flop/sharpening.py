"""Sharpening makes one head the ideal memory head, and does not repair what was never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.lenses.attention_pictures import mark_attention
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SOURCE
from sandlab.studies.flip_flop.transduction import PROBE, PROBE_WRITES, Transduction, transduce
from sandlab.studies.study import Lab, Outcome, study


@dataclass(frozen=True)
class Settings:
    """One layer, one head; trained at two rates of idling and several strengths of the entropy penalty.

    `sharp` is the strength that claims speak about.
    """

    seeds: int = 4
    idles: tuple[float, ...] = (0.9, 0.5)
    strengths: tuple[float, ...] = (0.0, 0.01, 0.1)
    sharp: float = 0.1
    steps: int = 1000
    width: int = 64
    lr: float = 1e-3
    precision: str = "float32"


@study(
    "flip-flop/sharpening",
    title="A sharpened head points at the latest write, but an unseen gap still breaks it",
    source=f"{SOURCE}, Figure 14 (result R8)",
    quick=Settings(),
    full=Settings(seeds=25, strengths=(0.0, 0.01, 0.1, 1.0), steps=3000, width=256, precision="tf32"),
    claims=[
        Claim(
            "entropy-falls",
            "An entropy penalty makes attention rows much sharper.",
            f"{SOURCE}, §5",
            "row entropy at strength 0.1 over that at 0, trained at p(⊥) = 0.9",
            Below(0.5),
        ),
        Claim(
            "mass-grows",
            "The sharpened head puts more of its mass on the latest write.",
            f"{SOURCE}, Figure 14",
            "mass on the latest write at no-ops, strength 0.1 minus strength 0",
            Above(0.0),
        ),
        Claim(
            "good-in-distribution",
            "Both the plain and the sharpened head answer their training distribution.",
            f"{SOURCE}, Figure 14",
            "largest mean error at p(⊥) = 0.9 of models trained there",
            Below(0.01),
        ),
        Claim(
            "no-repair",
            "Sharpening does not repair reads over gaps that training never showed.",
            f"{SOURCE}, (R8)",
            "error at p(⊥) = 0.98 of models trained at 0.5 with strength 0.1",
            Above(0.1),
        ),
        Claim(
            "plain-fails-too",
            "The plain head trained on short waits fails on long ones as well.",
            f"{SOURCE}, (R8)",
            "error at p(⊥) = 0.98 of models trained at 0.5 without penalty",
            Above(0.1),
        ),
        Claim(
            "right-kind",
            "The plain head spreads over all writes of the right kind: they get more mass than the latest write alone.",
            f"{SOURCE}, Figure 14(a)",
            "mass on writes of the stored symbol minus mass on the latest write, no-ops, plain, trained at 0.9",
            Above(0.0),
        ),
        Claim(
            "writes-look-away",
            "A sharp head need not attend to a write at the write itself: the residual stream carries it.",
            f"{SOURCE}, Figure 14(c)",
            "smallest share over sharpened heads of writes whose largest weight is on themselves",
            Below(0.5),
            exact=True,
            presets=("full",),
        ),
        Claim(
            "sharp-and-wrong",
            "Some sharpened runs end in a sharp and wrong minimum, more often where waits are short.",
            f"{SOURCE}, Figure 14(d)",
            "share of sharpened runs with more than 1 % error where they were trained, at p(⊥) = 0.5 minus at 0.9",
            Above(0.0),
            exact=True,
            presets=("full",),
        ),
    ],
)
def sharpening(config: Settings, lab: Lab) -> Outcome:
    """One attention layer with one head on the flip-flop automaton, with and without an entropy penalty.

    Models are trained at p(⊥) = 0.9 (long waits are common) and at 0.5 (they are not), with penalty strengths 0, 0.01,
    0.1 (full: also 1) on the mean row entropy, and tested at p(⊥) = 0.5, 0.9 and 0.98. The maps show the probe
    σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥; writes are marked on the axis. A plain head is right but diffuse; a sharpened one is nearly
    one-hot on the latest write; trained at 0.5 both fail on long waits.
    """
    seeds = tuple(range(config.seeds))
    grid = [(idle, strength) for idle in config.idles for strength in config.strengths]
    jobs = [
        Transduction(
            seeds, lab.device, idle=idle, strength=strength, steps=config.steps, width=config.width, lr=config.lr,
            precision=config.precision,
        )
        for idle, strength in grid
    ]  # fmt: skip
    found = dict(zip(grid, lab.map(transduce, jobs, label="one-layer heads")))
    common, rare = config.idles[0], config.idles[-1]
    plain, sharp = found[common, config.strengths[0]], found[common, config.sharp]
    pushed = [strength for strength in config.strengths if strength > 0]
    failed = {
        idle: np.mean([found[idle, strength][f"error_{idle}"] > 0.01 for strength in pushed]) for idle in config.idles
    }
    own = [found[idle, strength]["scores"]["hit_write"][:, 0] for idle in config.idles for strength in pushed]
    measurements = {
        "entropy-falls": (sharp["entropy"] / plain["entropy"])[:, 0],
        "mass-grows": (sharp["scores"]["mass_idle"] - plain["scores"]["mass_idle"])[:, 0],
        "good-in-distribution": np.maximum(sharp["error_0.9"], plain["error_0.9"]),
        "no-repair": found[rare, config.sharp]["error_0.98"],
        "plain-fails-too": found[rare, config.strengths[0]]["error_0.98"],
        "right-kind": (plain["scores"]["type_mass"] - plain["scores"]["mass_idle"])[:, 0],
        "writes-look-away": float(np.min(own)),
        "sharp-and-wrong": float(failed[rare] - failed[common]),
    }
    rows = [_row(idle, strength, result) for (idle, strength), result in found.items()]
    return Outcome(measurements, {"maps": _draw(found, config)}, {"heads": rows})


def _row(idle: float, strength: float, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "trained at p(⊥)": idle,
        "strength": strength,
        "error at 0.9": float(result["error_0.9"].mean()),
        "error at 0.5": float(result["error_0.5"].mean()),
        "error at 0.98": float(result["error_0.98"].mean()),
        "mass on latest write": float(result["scores"]["mass_idle"].mean()),
        "mass on writes of its kind": float(result["scores"]["type_mass"].mean()),
        "writes that attend to themselves": float(result["scores"]["hit_write"].mean()),
        "row entropy": float(result["entropy"].mean()),
        "failed seeds (error > 1 % where trained)": int((result[f"error_{idle}"] > 0.01).sum()),
    }


def _draw(found: dict[tuple[float, float], dict[str, Any]], config: Settings) -> Any:
    marks = ["⊥" if token == 0 else f"σ{token - 1}" for token in PROBE]
    figure, axes = figures.new(columns=len(config.strengths), rows=len(config.idles), width=2.7, height=2.6)
    for axis, ((idle, strength), result) in zip(axes, found.items()):
        pattern = result["maps"]["layers.0.attention.pattern"][0, 0]
        error = result["error_0.98"].mean()
        title = f"p(⊥) = {idle:g}, λ = {strength:g}\nerror at 0.98: {error:.2g}"
        figures.heatmap(axis, pattern, title=title, low=0.0, high=1.0, bar=False)
        mark_attention(axis, pattern, writes=PROBE_WRITES)
        axis.set_xticks(range(len(marks)), marks, fontsize=8)
        axis.set_yticks(range(len(marks)), marks, fontsize=8)
        axis.title.set_fontsize(9)
    axes[0].set_ylabel("query")
    return figure
