"""A linear probe finds the model's errors in its last layer; clusters of errors need no training.

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
0.93; on the small models, which make more kinds of error, 0.80 to 0.90. Untrained models have clusters too: their
errors and correct prefixes end in different tokens, the silhouette of the errors is 0.13 above chance (small models:
0.13), and a linear probe reaches 0.80. The picture alone does not show that a model knows its errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.verifiers.trained import train_probe
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import GREY, QUERIES, THESIS, Writer, spread, table
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

DEPTHS = (1, 2, 4)  # linear maps of a probe
LENGTHS, WORDS = range(25, dyck.LENGTH + 1), 500  # prefixes on which false alarms are counted, and of how many words

study = Study(
    "verifier/representations",
    title="A linear probe finds the model's errors in its last layer; clusters of errors need no training",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, §3.2.1.2 and Figure 3.1)",
    **dyck.PRESETS,
)


def fit_probes(job: dyck.Job, writer: Writer) -> dict[str, float]:
    """Validation accuracies, means over random splits: of the linear probe ("linear"), by activation, by depth.

    "25 brackets", …   share of correct prefixes of that length that the verifier rejects
    """
    errors, config = writer.errors, writer.model.config
    assert isinstance(config, TransformerConfig)
    points = ["embed", *(f"layers.{layer}.resid_post" for layer in range(config.layers)), "ln_final"]
    features = writer.features(errors.strings, *points)
    labels = torch.tensor(errors.labels, device=job.device)

    def accuracy(point: str, depth: int, splits: int) -> float:
        options = {"layers": depth, "steps": job.settings.probe_steps}
        probes = (train_probe(features[point], labels, rng=rng(job.seed, "split", n), **options) for n in range(splits))
        return float(np.mean([probe.validation_accuracy for probe in probes]))

    found = {"linear": accuracy("ln_final", 1, job.settings.splits)}
    found |= {point: accuracy(point, 1, 2) for point in points}
    found |= {f"{depth} maps": accuracy("ln_final", depth, 2) for depth in DEPTHS}
    words = dyck.whole_words(WORDS, rng(job.seed, "alarms", device=job.device))
    network = errors.verifiers["trained"].network.to(job.device)
    for brackets in LENGTHS:
        prefixes = writer.features([word[: brackets + 1] for word in words], "ln_final")["ln_final"]
        found[f"{brackets} brackets"] = float((network.score(prefixes.float()) < 0.5).double().mean())
    return found


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
    """Validation accuracies and false alarms by name, for each model; and the pictures of the models."""

    probes: dict[str, np.ndarray]
    pictures: list[Picture]


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    models = dyck.train_models(settings, lab)
    return Results(table(models.measure(fit_probes, "probes")), models.measure(draw_picture, "pictures of activations"))


@study.claim(Mean(above=0.85), source=THESIS, at="§3.2.1.2", paper="0.93 ± 0.039")
def linear(results: Results) -> np.ndarray:
    """A linear probe of the last layer separates wrong from correct prefixes.

    Validation accuracy, mean over several splits.
    """
    return results.probes["linear"]


@study.claim(
    Mean(above=0.24),
    source=THESIS,
    at="Figure 3.1",
    note="untrained models reach 0.13 (at most 0.24): the bound was chosen with that at hand",
)
def clusters(results: Results) -> list[float]:
    """In a two-dimensional picture the errors lie closer together than random points do, and than in untrained models.

    Silhouette of the errors minus its mean under shuffled labellings, for each model.
    """
    return [each.silhouette - float(np.mean(each.shuffled)) for each in results.pictures]


@study.table
def validation_accuracies(results: Results) -> dict[str, Rows]:
    points = [name for name in results.probes if name.startswith(("embed", "layers", "ln_final"))]
    layers: Rows = [{"activation": name, "validation accuracy": spread(results.probes[name])} for name in points]
    depths: Rows = [
        {"linear maps": depth, "validation accuracy": spread(results.probes[f"{depth} maps"])} for depth in DEPTHS
    ]
    return {"linear probe by layer": layers, "probe by depth (last layer)": depths}


@study.table
def correct_prefixes_rejected(results: Results) -> dict[str, Rows]:
    rows: Rows = [{"brackets": n, "rejected": spread(results.probes[f"{n} brackets"])} for n in LENGTHS]
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
