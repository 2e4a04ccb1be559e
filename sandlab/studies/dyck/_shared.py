"""What the studies of this chapter share: the source, the models and their training, the probes, and the maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Snapshot, Training
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import InvariantLogits, Penalised
from sandlab.learning.population import Population
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.dyck.balance import balance_report, seen_drift
from sandlab.lenses.dyck.bracket_attention import closing_accuracy, stack_likeness, variation_per_run
from sandlab.models.dyck.codes import MinimalDyckConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import NotMeasured
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.dyck.nested_prefix import NestedPrefix

SOURCE = (
    "Wen et al. 2023, Transformers are uninterpretable with myopic methods: a case study with bounded Dyck grammars"
)
BOUNDED = Dyck(words="bounded")
"""Complete words of two types, depth 4, at most 28 brackets, then END."""
LONGEST = 500
"""Brackets of the long prefixes on which trained models are tested."""


def transformer(
    world: Dyck, *, layers: int = 2, width: int = 50, norm: str = "pre", linear: bool = False
) -> TransformerConfig:
    """A causal transformer with one head, whose initial weights are so small that attention starts nearly uniform.

    norm     where the norm stands; "attention-branch" is the theory's: it sees the attention's output alone
    linear   positions: one input coordinate i/6000, with a learned direction
    With linear positions or the theory's norm, token vectors start large and the read-out has a bias.
    """
    large = linear or norm != "pre"
    return TransformerConfig(
        vocab=world.vocab,
        outputs=world.outputs,
        length=LONGEST + 2 * world.largest_depth + 2,
        layers=layers,
        width=width,
        mlp_width=width,
        mlp="relu",
        norm=norm,
        positions="learned-linear" if linear else "none",
        position_slope=1 / 6000 if linear else None,
        token_std=(world.vocab + 1) ** -0.5 if large else None,
        readout_bias=large,
        init_std=0.05,
    )


def minimal(
    world: Dyck, *, embedding: str = "type-depth", width: int = 50, residual: bool = False
) -> MinimalDyckConfig:
    """One attention layer over (type, depth) embeddings, as behind a first layer that does its work perfectly.

    residual   with a residual link and a ReLU block; without, attention, norm and read-out alone
    """
    return MinimalDyckConfig(
        types=world.types,
        depth=world.largest_depth,
        outputs=world.outputs,
        embedding=embedding,
        width=width,
        residual=residual,
        mlp_width=width if residual else 0,
    )


def training(steps: int, *, lr: float = 3e-3, weight_decay: float = 0.0) -> Training:
    """Adam with a cosine schedule, 100 words a step; models are probed at the end, on 200 words."""
    adam = Training(steps, batch_size=100, optimizer="adam", schedule="cosine", evals=1, eval_examples=200)
    return replace(adam, lr=lr, weight_decay=weight_decay)


def contrastive(plain: Experiment, strength: float = 0.3) -> Experiment:
    """The same with a penalty for logits that change when nested pairs are put before the word."""
    penalty = InvariantLogits(NestedPrefix(*_language(plain)), strength)
    return replace(plain, training=replace(plain.training, objective=Penalised(CrossEntropy(), (penalty,))))


def closing(now: Snapshot) -> dict[str, Tensor]:
    """Closing accuracy on held-out words: "accuracy"."""
    types, _ = _language(now)
    return {"accuracy": closing_accuracy(now.model, now.batch.inputs, types)["argmax"]}


@dataclass(frozen=True)
class LongWords:
    """Closing accuracy at five positions of the last fifth of long prefixes: "long_accuracy", "long_threshold"."""

    words: int = 40
    length: int = LONGEST

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        types, depth = _language(now)
        tokens = Dyck(types, depth, self.length).sample(self.words, rng=now.rng(2)).inputs
        positions = [int(self.length * share) - 1 for share in (0.8, 0.85, 0.9, 0.95, 1.0)]
        found = [closing_accuracy(now.model, part, types, positions=positions) for part in tokens.split(20)]
        means = {name: torch.stack([part[name] for part in found]).mean(0) for name in ("argmax", "threshold")}
        return {"long_accuracy": means["argmax"], "long_threshold": means["threshold"]}


def probe_maps(now: Snapshot) -> dict[str, Tensor]:
    """Attention on the probe word.

    maps         (member, layer, query, key), heads averaged
    stack_like   share of queries whose largest last-layer weight is on the bracket to be closed
    """
    types, depth = _language(now)
    word = probe_word(types, depth).to(now.device)
    maps = layer_maps(now.model, word)
    return {"maps": maps[:, :, 0], "stack_like": stack_likeness(maps[:, -1], word, types)["argmax"]}


def balance(now: Snapshot) -> dict[str, np.ndarray]:
    """Balance of models with a minimal first layer: "violation", "worst_violation" and "largest_ratio", max ‖S‖/P."""
    reports = [balance_report(member.cpu()) for member in now.model.members()]
    return {
        "violation": np.array([report.violation for report in reports]),
        "worst_violation": np.array([report.worst_violation for report in reports]),
        "largest_ratio": np.array([report.ratios.max() for report in reports]),
    }


def drift(now: Snapshot) -> dict[str, np.ndarray]:
    """The drift that the read-out sees, of models without residual link: "drift"."""
    return {"drift": np.array([seen_drift(member.cpu()) for member in now.model.members()])}


def probe_word(types: int, depth: int) -> Int[Tensor, "1 time"]:
    """START (((( )))) [[[[ ]]]]: each of two types nested to the largest depth, as in the published maps."""
    word = [token for kind in (0, 1 % types) for token in [2 * kind] * depth + [2 * kind + 1] * depth]
    return torch.tensor([[2 * types, *word]])


def layer_maps(model: Population[Any], words: Int[Tensor, "word time"]) -> Float[Tensor, "member layer word query key"]:
    """Attention of every layer, heads averaged."""
    patterns = attention_maps(model, words, names="*pattern", average=False).values()
    return torch.stack([each if each.ndim == 4 else each.mean(2) for each in patterns], 1)  # one head may have no axis


def _language(source: Snapshot | Experiment) -> tuple[int, int]:
    """Types and depth of the brackets."""
    assert isinstance(source.world, Dyck)
    return source.world.types, source.world.largest_depth


def variation(maps: Float[np.ndarray, "seed *lead query key"]) -> Float[np.ndarray, "seed"]:
    """Mean of ‖A − A'‖²_F between each seed and the others."""
    return variation_per_run(torch.from_numpy(maps)).numpy()


def jackknife(
    statistic: Callable[..., np.ndarray], *variations: Float[np.ndarray, "seed"]
) -> Float[np.ndarray, "seed"]:
    """Pseudo-values of a statistic of mean variations, one per seed.

    The distances of one seed to the others are not independent of those of the next: a plain standard error would be
    about half as large as it should be. With θ the statistic of all n seeds and θᵢ that without seed i, the values are
    nθ − (n − 1)θᵢ.
    """
    seeds = len(variations[0])
    if seeds < 3:
        raise NotMeasured("variation between seeds needs at least three of them")
    means = [np.full(seeds, each.mean()) for each in variations]
    without = [(seeds * mean - 2 * each) / (seeds - 2) for mean, each in zip(means, variations)]
    return seeds * statistic(*means) - (seeds - 1) * statistic(*without)


def one_below_the_other(differences: Sequence[Float[np.ndarray, "seed"]]) -> Float[np.ndarray, "group seed"]:
    """Rows for `Order` whose steps are the given differences: the smallest of them is judged, all at once."""
    return np.cumsum([np.zeros_like(differences[0]), *differences], axis=0)


def draw_map(axis: Axes, pattern: Float[np.ndarray, "query key"], title: str, marks: str = "") -> None:
    """An attention map; with marks, the tokens at both axes."""
    figures.heatmap(axis, pattern, title=title, low=0.0, high=1.0, bar=False)
    axis.title.set_fontsize(9)
    if marks:
        axis.set_xticks(range(len(marks)), marks, fontsize=6)
        axis.set_yticks(range(len(marks)), marks, fontsize=6)
    else:
        axis.set(xlabel="key", ylabel="query")


def draw_seeds(maps: Float[np.ndarray, "seed query key"], layer: str) -> Figure:
    """The maps of up to four seeds side by side."""
    figure, axes = figures.new(columns=min(4, len(maps)), width=2.5, height=2.6)
    for seed, axis in enumerate(axes):
        draw_map(axis, maps[seed], f"{layer}, seed {seed}")
    return figure
