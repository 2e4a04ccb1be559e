"""Many mechanisms for one bit: attention of deeper models, plain and sharpened, and what its maxima do not say."""

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

KINDS = ("plain", "sharpened", "first layer sharpened")


@dataclass(frozen=True)
class Settings:
    seeds: int = 6
    layers: int = 2
    heads: int = 4
    width: int = 64
    strength: float = 0.1
    steps: int = 500
    idle: float = 0.9
    lr: float = 1e-3
    precision: str = "float32"


@study(
    "flip-flop/mechanisms",
    title="The same bit, remembered in many ways: attention maps before and after sharpening",
    source=f"{SOURCE}, Figures 4 and 15–18",
    quick=Settings(),
    full=Settings(seeds=5, layers=6, heads=8, width=512, strength=0.01, steps=2500, lr=3e-4, precision="tf32"),
    claims=[
        Claim(
            "sharper",
            "Sharpening lowers the entropy of attention rows.",
            f"{SOURCE}, Figure 4",
            "mean row entropy, sharpened over plain",
            Below(0.5),
        ),
        Claim(
            "ideal-head",
            "A sharpened model has a first-layer head whose maximum is the latest write.",
            f"{SOURCE}, Figure 4(c)",
            "best head's share of no-op rows with the maximum on the latest write, sharpened models",
            Above(0.9),
            paper="at least one head equals the ideal pattern",
        ),
        Claim(
            "sharpness-spreads",
            "With only the first layer sharpened, later layers are sharper than in a plain model too.",
            f"{SOURCE}, Figure 18",
            "entropy of later layers, first layer sharpened over plain",
            Below(1.0),
        ),
        Claim(
            "misleading-maxima",
            "The largest attention weight can sit on a wrong token although the answer is right.",
            f"{SOURCE}, Figure 15",
            "share of first-layer rows of plain models that are right with a misplaced maximum",
            Above(0.0),
        ),
        Claim(
            "importance",
            "In such rows, weight times value norm points at a right token more often than weight alone (which never).",
            f"{SOURCE}, Figure 15",
            "share of misleading first-layer rows whose largest importance is on a right token, plain models",
            Above(0.0),
        ),
        Claim(
            "smaller-weights",
            "Sharpening keeps the weights smaller.",
            f"{SOURCE}, Figure 16",
            "length of the weight vector, sharpened over plain, at the end",
            Below(1.0),
        ),
        Claim(
            "dynamics",
            "Sharpening changes how the heads of a layer come apart during training.",
            f"{SOURCE}, Figure 16",
            "mean over training and layers of the distance between heads, sharpened over plain",
            Above(1.1),
            paper="different dynamics",
        ),
    ],
)
def mechanisms(config: Settings, lab: Lab) -> Outcome:
    """Deeper transformers on the flip-flop automaton: plain, sharpened, and with only the first layer sharpened.

    The maps show each layer and head on the probe σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥ for one seed of the plain and one of the
    sharpened model. The curves show how far apart the heads of a layer are (Frobenius distance of all pairs) during
    training. A maximum of attention is not an explanation: rows exist whose maximum is on a wrong token while the
    answer is right; weighing attention by the norm of what it carries repairs some of them. This is looked at
    in the first layer, where a token is only what it is: in the last one most tokens carry the answer already, maxima
    are anywhere (see the table) and importance repairs next to nothing.
    """
    strengths = {
        "plain": (0.0, "*"),
        "sharpened": (config.strength, "*"),
        "first layer sharpened": (config.strength, "0"),
    }
    jobs = [
        Transduction(
            tuple(range(config.seeds)), lab.device, idle=config.idle, layers=config.layers, heads=config.heads,
            width=config.width, strength=strengths[kind][0], sharpen_layers=strengths[kind][1], steps=config.steps,
            lr=config.lr, precision=config.precision,
        )
        for kind in KINDS
    ]  # fmt: skip
    found = dict(zip(KINDS, lab.map(transduce, jobs, label="deeper models")))
    plain, sharp, first = (found[kind] for kind in KINDS)
    measurements = {
        "sharper": sharp["entropy"].mean(1) / plain["entropy"].mean(1),
        "ideal-head": sharp["scores"]["hit_idle"].max(1),
        "sharpness-spreads": first["entropy"][:, 1:].mean(1) / plain["entropy"][:, 1:].mean(1),
        "misleading-maxima": plain["misleading"][:, 0],
        "importance": plain["misleading"][:, 1],
        "smaller-weights": sharp["film"]["norms"][-1] / plain["film"]["norms"][-1],
        "dynamics": _spread(sharp) / _spread(plain),
    }
    pictures = {"maps": _maps(found, config), "head-differences": _differences(found)}
    notes = {
        "sharpness-spreads": "at this size later layers are about as diffuse as in a plain model",
        "smaller-weights": "at this size sharpening makes the weight vector a little longer, not shorter",
    }
    return Outcome(measurements, pictures, {"errors": [_row(kind, found[kind]) for kind in KINDS]}, notes)


def _spread(result: dict[str, Any]) -> np.ndarray:
    """Mean distance between two heads of a layer, over training and layers, per seed."""
    return result["film"]["differences"].mean((0, 2, 3))


def _row(kind: str, result: dict[str, Any]) -> dict[str, Any]:
    errors = {f"error at {idle}": float(result[f"error_{idle}"].mean()) for idle in (0.9, 0.5, 0.98)}
    misled = {
        "misleading rows, first layer": float(result["misleading"][:, 0].mean()),
        "misleading rows, last layer": float(result["misleading_last"][:, 0].mean()),
    }
    return {"model": kind, **errors, "row entropy": float(result["entropy"].mean()), **misled}


def _maps(found: dict[str, dict[str, Any]], config: Settings) -> Any:
    marks = ["⊥" if token == 0 else f"σ{token - 1}" for token in PROBE]
    kinds = ("plain", "sharpened")
    layers = min(config.layers, 3)
    figure, axes = figures.new(columns=config.heads, rows=layers * 2, width=1.7, height=1.75)
    place = 0
    for kind in kinds:
        for layer in range(layers):
            pattern = found[kind]["maps"][f"layers.{layer}.attention.pattern"][0]
            for head in range(config.heads):
                axis = axes[place]
                title = f"{kind}, layer {layer + 1}" if head == 0 else ""
                figures.heatmap(axis, pattern[head], title=title, low=0.0, high=1.0, bar=False)
                mark_attention(axis, pattern[head], writes=PROBE_WRITES)
                axis.title.set_fontsize(8.5)
                axis.set_xticks(range(len(marks)), marks, fontsize=6)
                axis.set_yticks(range(len(marks)) if head == 0 else [], marks if head == 0 else [], fontsize=6)
                place += 1
    return figure


def _differences(found: dict[str, dict[str, Any]]) -> Any:
    figure, axes = figures.new(columns=len(KINDS), width=3.2, height=2.8)
    for axis, kind in zip(axes, KINDS):
        film = found[kind]["film"]
        differences = film["differences"].mean(1)
        for layer in range(differences.shape[1]):
            curves = differences[:, layer].T
            figures.band(axis, film["steps"], curves, label=f"layer {layer + 1}")
        axis.set(title=kind, xlabel="training step")
    axes[0].set_ylabel("distance between heads")
    axes[0].legend()
    return figure
