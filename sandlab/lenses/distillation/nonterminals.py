"""A linear probe of non-terminals with attention over positions (Allen-Zhu and Li 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer
from sandlab.learning.experiment import Snapshot
from sandlab.learning.schedules import factors
from sandlab.models.hooks import record
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.registry import register
from sandlab.worlds.base import World

__all__ = ["NonterminalProbe", "PositionProbe", "nonterminal_probe"]


class PositionProbe(nn.Module):
    """G_i = Σ_r Σ_k softmax_k⟨P_{i,r}, P_{k,r}⟩ f_r(e_k): attention by position alone, a linear map for each head."""

    def __init__(
        self, features: int, length: int, levels: int, classes: int, heads: int = 16, width: int = 256
    ) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(heads, length, width) / width**0.5)
        self.read = nn.Parameter(torch.randn(heads, features, levels * classes) / (features * heads) ** 0.5)
        self.levels, self.classes = levels, classes

    def forward(self, x: Float[Tensor, "example time feature"]) -> Float[Tensor, "example time level class"]:
        places = self.places[:, : x.shape[1]]
        weights = (places @ places.mT).softmax(-1)
        logits = sum(weight @ (x @ read) for weight, read in zip(weights, self.read))
        assert isinstance(logits, Tensor)
        return logits.unflatten(-1, (self.levels, self.classes))


@register("lenses")
def nonterminal_probe(
    model: nn.Module,
    world: World,
    *,
    train: int = 51_200,
    test: int = 1024,
    batch_size: int = 64,
    epochs: int = 4,
    lr: float = 1e-2,
    heads: int = 16,
    width: int = 256,
    positions: str = "boundary",
    seed: int = 0,
) -> Float[np.ndarray, "level"]:
    """Test accuracy for the non-terminal of each layer (the root first), from the last layer's vectors.

    positions   "boundary": at the last token of each span (Definition 26); "all": the ancestor at every token, as in
                the authors' code

    The world gives the truth "ancestors" and "ends" (latent=True) and is sampled without masking if it masks.
    """
    choice("positions", positions, ("boundary", "all"))
    integer("train", train, low=batch_size)
    device = next(model.parameters()).device
    generator = rng(seed, "non-terminals", device=device)
    vectors, labels, count = _vectors(model, world, test, generator, positions)
    levels = labels.shape[1]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        probe = PositionProbe(vectors.shape[-1], vectors.shape[1], levels, count, heads, width).to(device)
    steps = max(1, epochs * train // batch_size)
    optimizer, table = torch.optim.Adam(probe.parameters(), lr=lr), factors("cosine", steps, warmup=int(0.06 * steps))
    for step in range(steps):
        x, y, _ = _vectors(model, world, batch_size, generator, positions)
        logits = probe(x).transpose(1, 2)
        loss = F.cross_entropy(logits.flatten(0, 2), y.flatten(), ignore_index=-1)
        optimizer.param_groups[0]["lr"] = lr * float(table[step])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (probe(vectors).argmax(-1).transpose(1, 2) == labels) & (labels >= 0)
    return (right.sum((0, 2)) / (labels >= 0).sum((0, 2)).clamp(min=1)).cpu().numpy()


@torch.no_grad()
def _vectors(
    model: nn.Module, world: World, n: int, generator: torch.Generator, positions: str
) -> tuple[Float[Tensor, "n time feature"], Int[Tensor, "n level time"], int]:
    """Vectors of the tokens, labels of the layers above them (−1: not asked for), number of symbols."""
    batch = world.sample(n, rng=generator)
    vocab, pad = world.vocab, world.pad  # type: ignore[attr-defined]
    masks = batch.inputs.shape == batch.targets.shape and bool((batch.targets[:, 0] == world.bos).all())  # type: ignore[attr-defined]
    clean = batch.targets if masks else batch.inputs
    clean = torch.where(clean == pad, pad + vocab, clean) if masks else clean
    config = model.config
    assert isinstance(config, TransformerConfig)
    last = f"layers.{config.layers - 1}.resid_post"
    training = model.training
    with record(model.eval(), last) as cache:
        model(clean)
    model.train(training)
    ancestors, ends = batch.truth["ancestors"][:, :-1], batch.truth["ends"][:, :-1]
    time = min(clean.shape[1] - 1, ancestors.shape[2])
    labels = torch.where(ends | (positions == "all"), ancestors, -1)[..., :time]
    return cache[last][:, 1 : time + 1], labels, len(world.rules.rules) + 8  # type: ignore[attr-defined]


@dataclass(frozen=True)
class NonterminalProbe:
    """A final probe: accuracies by layer of every member."""

    train: int = 2048
    heads: int = 4
    width: int = 32
    positions: str = "boundary"

    def __call__(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """nonterminals (member, level)."""
        from dataclasses import replace

        world = replace(getattr(snapshot.world, "world", snapshot.world), latent=True)
        rows = [
            nonterminal_probe(
                snapshot.model.member(i), world, train=self.train, test=256, epochs=1, heads=self.heads,
                width=self.width, positions=self.positions,
            )
            for i in range(len(snapshot.model))
        ]  # fmt: skip
        return {"nonterminals": np.stack(rows)}
