"""Figure 4.3: a density-ratio network on images, trained by descent and by normalised descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab.figures import COLOURS, new, style
from sandlab.learning.nce.networks import ContrastiveLoss
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.base import seeded
from sandlab.models.nce.density_ratio import DensityRatio, DensityRatioConfig
from sandlab.random import rng
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.nce.image_contrast import ImageContrast

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110), section 4.1.6, figure 4.3"


@dataclass(frozen=True)
class ImageSettings:
    """`cap` is the largest step of plain descent that counts for the claims; larger ones are reported."""

    world: ImageContrast
    network: DensityRatioConfig
    descent_rates: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 0.3)
    normalised_rates: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 0.3, 1.0)
    cap: float = 0.1
    steps: int = 500
    batch: int = 128
    clip_ratio: float = 30.0
    seeds: int = 3


@dataclass(frozen=True)
class ImageJob:
    """One loss and one method: every rate on every seed, as one population."""

    world: ImageContrast
    network: DensityRatioConfig
    kind: str
    method: str
    rates: tuple[float, ...]
    steps: int
    batch: int
    clip_ratio: float
    seeds: int
    device: str


def train_ratios(config: ImageJob) -> dict[str, Any]:
    """Training loss (rate, seed, step); members of one seed share weights at the start, all share the batches."""
    settings = {name: getattr(config.network, name) for name in config.network.__dataclass_fields__}

    def build(seed: int) -> DensityRatio:
        with seeded(seed):
            return DensityRatio(**settings)

    seeds = list(range(config.seeds))
    population = Population(build, seeds=seeds * len(config.rates)).to(config.device)
    histories = train(
        population,
        config.world,
        steps=config.steps,
        batch_size=config.batch,
        rng=rng(0, "images", device=config.device),
        objective=ContrastiveLoss(config.kind, config.clip_ratio if config.kind == "ence" else None),
        optimizer="sgd" if config.method == "gd" else "normalised",
        lr=[rate for rate in config.rates for _ in seeds],
        nan="continue",
        precision="float32" if config.device == "cpu" else "tf32",
        compile=False,
        progress=False,
    )
    losses = np.stack([np.asarray(history.loss, dtype=np.float64) for history in histories])
    return {"loss": losses.reshape(len(config.rates), len(seeds), -1)}


CLAIMS = tuple(
    Claim(
        kind,
        f"On images the {label} loss falls faster by normalised descent than by gradient descent.",
        "figure 4.3",
        "final training loss (median of the last 5 %) by descent minus by normalised descent, each at its best step",
        Above(0.0),
        paper="yes",
    )
    for kind, label in (("nce", "NCE"), ("ence", "eNCE"))
)


@study(
    "nce/images",
    title="A density-ratio network learns faster by normalised descent",
    source=SOURCE,
    claims=CLAIMS,
    quick=ImageSettings(ImageContrast("digits"), DensityRatioConfig(size=8, body="mlp", features=32, width=128)),
    full=ImageSettings(
        ImageContrast("digits"),
        DensityRatioConfig(size=8, body="resnet18", features=64, width=64),
        normalised_rates=(1e-2, 3e-2, 1e-1, 0.3, 1.0),
        steps=1000,
    ),
)
def images(config: ImageSettings, lab: Lab) -> Outcome:
    """Handwritten digits against the Gaussian of their mean and covariance; g(x) = −fᵀWf − bᵀf − c models log p/q.

    **Set-up.** The 1797 8×8 digits of scikit-learn, dequantised, squeezed and sent through the logit; noise is the
    Gaussian fitted to them, so that the first two moments tell nothing. f is an MLP 64 → 128 → 32 (quick) or a
    ResNet-18 with group norms (full); W = LLᵀ + εI; 500 updates (full: 1000) on batches of 128; descent is SGD without
    momentum, normalised descent divides the gradient of all weights by its length. eNCE clamps the log-ratio to ±30.
    Each method at the best of its step sizes, by the median loss of the last 5 % of updates. The source uses MNIST;
    with a local copy,
    `sl.run("nce/images", settings={"world": ImageContrast("mnist", folder="…"), "network": DensityRatioConfig()})`.

    **What the source leaves open.** Its noise, preprocessing, batch, steps and clipping are not given; those here are
    one reading, after Rhodes, Xu & Gutmann 2020. Plain descent is judged at steps up to 0.1 as is usual; larger ones
    are in the table, since a fair comparison should show them.

    **What to look for.** Loss on a logarithmic scale against updates: plain descent stays long at the plateau of the
    start (log 2 for NCE, 1 for eNCE) while normalised descent leaves it at once. In full (an H200, 98 seconds) plain
    descent on NCE does leave it, after some 600 updates; on eNCE it never does. Its steps are tried by factors of ten:
    between the best one there, 0.01, and 0.1, where it diverges, a finer search might bring it closer.
    """
    plan = [(kind, method) for kind in ("nce", "ence") for method in ("gd", "ngd")]
    rates = {"gd": config.descent_rates, "ngd": config.normalised_rates}
    jobs = [
        ImageJob(
            config.world,
            config.network,
            kind,
            method,
            rates[method],
            config.steps,
            config.batch,
            config.clip_ratio,
            config.seeds,
            lab.device,
        )
        for kind, method in plan
    ]
    found = dict(zip(plan, lab.map(train_ratios, jobs, label="networks"), strict=True))
    losses = {key: np.asarray(result["loss"]) for key, result in found.items()}
    tail = max(1, config.steps // 20)
    final = {key: _settled(values[..., -tail:]) for key, values in losses.items()}
    settled = {key: np.isfinite(values).all(-1) for key, values in final.items()}
    best = {
        (kind, method): _best(final[kind, method], rates[method], config.cap if method == "gd" else np.inf)
        for kind, method in plan
    }
    measurements = {
        kind: final[kind, "gd"][best[kind, "gd"]] - final[kind, "ngd"][best[kind, "ngd"]] for kind in ("nce", "ence")
    }
    table = [
        {
            "loss": {"nce": "NCE", "ence": "eNCE"}[kind],
            "method": {"gd": "gradient descent", "ngd": "normalised descent"}[method],
            "step size": rate,
            "final loss": float(final[kind, method][place].mean()) if settled[kind, method][place] else None,
            "chosen": "yes" if place == best[kind, method] else "",
        }
        for kind, method in plan
        for place, rate in enumerate(rates[method])
    ]
    with style():
        figure = _draw(losses, best, rates)
    return Outcome(measurements, {"loss": figure}, {"step sizes": table})


def _settled(values: np.ndarray) -> np.ndarray:
    """Median over the last updates; a run that overflowed counts as infinitely bad."""
    return np.median(np.where(np.isfinite(values), values, np.inf), axis=-1)


def _best(final: np.ndarray, rates: tuple[float, ...], cap: float) -> int:
    return int(np.argmin(np.where(np.asarray(rates) <= cap, final.mean(-1), np.inf)))


def _draw(losses: dict[tuple[str, str], np.ndarray], best: dict[tuple[str, str], int], rates: dict[str, Any]) -> Any:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    figure, axes = new(2, title="Images: normalised descent leaves the plateau first")
    for axis, kind in zip(axes, ("nce", "ence"), strict=True):
        for method, label, colour in (
            ("gd", "gradient descent", "#222222"),
            ("ngd", "normalised", COLOURS[3 if kind == "nce" else 5]),
        ):
            place = best[kind, method]
            curves = _smooth(losses[kind, method][place])
            x = np.arange(curves.shape[1])
            axis.plot(x, curves.mean(0), color=colour, linestyle="-", label=f"{label}, step {rates[method][place]:g}")
            axis.fill_between(x, curves.min(0), curves.max(0), color=colour, alpha=0.2, linewidth=0)
        axis.set(yscale="log", xlabel="updates", ylabel="training loss", title={"nce": "NCE", "ence": "eNCE"}[kind])
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.legend()
    return figure


def _smooth(curves: np.ndarray, width: int = 11) -> np.ndarray:
    """Running median over a few updates, so that single batches do not hide the curve; thinned for the figure."""
    padded = np.pad(curves, ((0, 0), (width // 2, width // 2)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    return np.median(windows, axis=-1)
