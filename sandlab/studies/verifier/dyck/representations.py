"""The model's last layer tells its errors apart: they form clusters and a linear probe finds them.

What the last layer looks like at the first wrong token of a completion, compared with correct prefixes of equal length.

Wrong: completions of unfamiliar prompts (nucleus 0.9), cut right after the first wrong token. Correct: prefixes of
fresh unfamiliar words with the same lengths. The last layer's activation at the last token of each is projected to two
dimensions by t-SNE (perplexity 30); a linear probe (width → 2, softmax) is fitted to nine tenths and tested on the
rest. Quick: 235 + 235 prefixes; full: 441 + 441, as published.

What to look for: red points in a few clusters of their own. The tables have the probe's accuracy by layer and that of
probes with hidden layers, and how often it rejects correct prefixes of the unfamiliar distribution, by length. A
warning is in the first row: the embedding of the last token alone, which knows nothing of the string, is nearly as good
in the small model. Errors are mostly closing brackets, correct prefixes end in open ones as well, and a probe may live
on that. Lengths at which no error was found are no part of its training: there its verdict is arbitrary.

**What was learnt.** At the published size (eight models) the probe reaches 0.94 to 0.99 on held-out strings, published
0.93; on the small models, which make more kinds of error, 0.80 to 0.90.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.verifiers.trained import train_probe
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import GREY, QUERIES, THESIS, Writer, by_model, spread
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

SHORTEST, WORDS = 25, 500  # of the prefixes on which false alarms are counted; words they are taken from

study = Study(
    "verifier/representations",
    title="The model's last layer tells its errors apart: they form clusters and a linear probe finds them",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, §3.2.1.2 and Figure 3.1)",
    quick=dyck.QUICK,
    full=dyck.FULL,
    null=dyck.NULL,
)


@dataclass(frozen=True)
class Probes:
    """Validation accuracies by random split: of the linear probe, by activation, by depth of the probe.

    alarms   share of correct prefixes of 25, 26, … 32 brackets that the verifier rejects
    """

    validation: list[float]
    layers: dict[str, list[float]]
    depths: dict[str, list[float]]
    alarms: list[float]


def fit_probes(job: dyck.Job, writer: Writer) -> Probes:
    errors, config = writer.errors, writer.model.config
    assert isinstance(config, TransformerConfig)
    points = ["embed", *(f"layers.{layer}.resid_post" for layer in range(config.layers)), "ln_final"]
    features = writer.features(errors.strings, *points)
    labels = torch.tensor(errors.labels, device=job.device)

    @lru_cache
    def accuracy(point: str, depth: int, split: int) -> float:
        source = rng(job.seed, "split", split)
        found = train_probe(features[point], labels, rng=source, layers=depth, steps=job.settings.probe_steps)
        return found.validation_accuracy

    words = dyck.whole_words(WORDS, rng(job.seed, "alarms", device=job.device))
    correct = [word[: brackets + 1] for brackets in range(SHORTEST, dyck.LENGTH + 1) for word in words]
    network = errors.verifiers["trained"].network.to(job.device)
    rejected = network.score(writer.features(correct, "ln_final")["ln_final"].float()) < 0.5
    return Probes(
        validation=[accuracy("ln_final", 1, split) for split in range(job.settings.splits)],
        layers={point: [accuracy(point, 1, split) for split in range(2)] for point in points},
        depths={str(depth): [accuracy("ln_final", depth, split) for split in range(2)] for depth in (1, 2, 4)},
        alarms=rejected.double().view(-1, WORDS).mean(1).tolist(),
    )


@dataclass(frozen=True)
class Picture:
    """Two dimensions (t-SNE) of the last layer at wrong (0) and correct (1) prefixes.

    silhouette   of the errors: how clustered they are; shuffled: under random labellings
    """

    points: np.ndarray
    labels: np.ndarray
    silhouette: float
    shuffled: list[float]


def draw_picture(job: dyck.Job, writer: Writer) -> Picture:
    from sklearn.manifold import TSNE
    from sklearn.metrics import pairwise_distances, silhouette_samples
    from threadpoolctl import threadpool_limits

    errors, count = writer.errors, len(writer.errors.strings) // 2
    half = min(job.settings.points // 2, count)
    strings = errors.strings[:half] + errors.strings[count : count + half]
    labels = np.array([0] * half + [1] * half)
    features = writer.features(strings, "ln_final")["ln_final"].float().cpu().numpy()
    # Perplexity 30 is the usual choice. One thread: the picture then depends on nothing else on the machine.
    with threadpool_limits(limits=1):
        points = TSNE(perplexity=min(30, half - 1), random_state=job.seed, init="pca").fit_transform(features)
    distances = pairwise_distances(points.astype(np.float64))

    def silhouette(labelling: np.ndarray) -> float:
        return float(silhouette_samples(distances, labelling, metric="precomputed")[labelling == 0].mean())

    chance = np.random.default_rng(job.seed)
    shuffled = [silhouette(chance.permutation(labels)) for _ in range(job.settings.shuffles)]
    return Picture(points, labels, silhouette(labels), shuffled)


@dataclass(frozen=True)
class Results:
    probes: list[Probes]
    pictures: list[Picture]


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    models = dyck.train_models(settings, lab)
    return Results(models.measure(fit_probes, "probes"), models.measure(draw_picture, "pictures of activations"))


@study.claim(Mean(above=0.85), source=THESIS, at="§3.2.1.2", paper="0.93 ± 0.039")
def linear(results: Results) -> np.ndarray:
    """A linear probe of the last layer separates wrong from correct prefixes.

    Validation accuracy, mean over several splits.
    """
    return by_model([each.validation for each in results.probes])


@study.claim(Exact(above=0.0), source=THESIS, at="Figure 3.1")
def clusters(results: Results) -> float:
    """In a two-dimensional picture the errors lie closer together than the same number of random points.

    Silhouette of the errors minus its mean under shuffled labellings, smallest over the models.
    """
    return min(each.silhouette - float(np.mean(each.shuffled)) for each in results.pictures)


@study.table
def linear_probe_by_layer(results: Results) -> Rows:
    return [
        {"activation": point, "validation accuracy": spread(by_model([each.layers[point] for each in results.probes]))}
        for point in results.probes[0].layers
    ]


@study.table
def probe_by_depth(results: Results) -> dict[str, Rows]:
    probes = results.probes
    rows: Rows = [
        {"linear maps": int(depth), "validation accuracy": spread(by_model([each.depths[depth] for each in probes]))}
        for depth in probes[0].depths
    ]
    return {"probe by depth (last layer)": rows}


@study.table
def correct_prefixes_rejected(results: Results) -> dict[str, Rows]:
    alarms = np.array([each.alarms for each in results.probes])
    rows: Rows = [{"brackets": SHORTEST + index, "rejected": spread(rates)} for index, rates in enumerate(alarms.T)]
    return {"correct prefixes rejected, by length": rows}


@study.figure
def picture(results: Results) -> Figure:
    columns = min(4, len(results.pictures))
    figure, axes = figures.new(columns, -(-len(results.pictures) // columns), width=4.0, height=3.6)
    for empty in axes[len(results.pictures) :]:
        empty.set_visible(False)
    for seed, (axis, each) in enumerate(zip(axes, results.pictures)):
        for label, colour, name in ((1, GREY, "correct prefix"), (0, figures.COLOURS[1], "first error")):
            axis.scatter(*each.points[each.labels == label].T, s=9, color=colour, label=name, rasterized=True)
        axis.set(xticks=[], yticks=[], title=f"model {seed}, silhouette of errors {each.silhouette:.2f}")
        axis.grid(False)
        axis.legend(loc="lower right", frameon=True, fontsize=8)
    return figure
