"""A language model of Dyck words, the errors it makes out of distribution, and a verifier trained on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.trained import ProbeVerifier, TrainedProbe, last_features, train_probe
from sandlab.learning.training import train
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.dyck.language import Dyck

LENGTH = 32
TOTAL = LENGTH + 2  # with START and END


@dataclass(frozen=True)
class DyckModel:
    """Architecture and training of the language model.

    ema     decay of the average of the weights; with a `power` 1 − max((t+1)^−power, 1 − ema) after the warm-up, so
            that the average follows early weights faster
    keep    "last": the averaged weights at the end; "best": those with the best accuracy on closing brackets of 10 000
            held-out words, looked at every `looks` steps, the first of equals
    """

    layers: int = 2
    heads: int = 4
    width: int = 64
    positions: str = "learned"
    norm_kind: str = "layer"
    gated: bool = False
    mlp: str = "gelu"
    mlp_width: int | None = None
    bias: bool = True
    steps: int = 1200
    batch_size: int = 32
    lr: float = 2e-3
    warmup: int = 100
    clip: float | None = 1.0
    ema: float = 0.995
    power: float | None = None
    keep: str = "last"
    looks: int = 100

    def decay(self, step: int) -> float:
        if self.power is None or step < self.warmup:
            return self.ema
        return 1 - max((step + 1) ** -self.power, 1 - self.ema)


# The published model: blocks in the style of Llama, one pass over 300 000 words in batches of 32, the first of
# the best weights. Closing brackets are all right long before the end: the last weights err much less elsewhere.
PUBLISHED = DyckModel(
    layers=6,
    heads=8,
    width=512,
    positions="rotary",
    norm_kind="rms",
    gated=True,
    mlp="silu",
    mlp_width=1024,
    bias=False,
    steps=9375,
    batch_size=32,
    lr=3e-4,
    clip=None,
    ema=0.999,
    power=0.67,
    keep="best",
)


def familiar(max_depth: int | None = None) -> Dyck:
    """Words of 32 brackets whose first type is rare (0.2): what the model is trained on."""
    return Dyck(types=2, depth=max_depth, length=LENGTH, words="complete", opening=0.5, type_probs=(0.2, 0.8))


def unfamiliar(max_depth: int | None = None) -> Dyck:
    """The same with the rare type frequent (0.8): out of distribution."""
    return Dyck(types=2, depth=max_depth, length=LENGTH, words="complete", opening=0.5, type_probs=(0.8, 0.2))


@dataclass(frozen=True)
class Corpus:
    """Words drawn beforehand and read once: step t trains on words t·n to (t+1)·n − 1."""

    words: Batch

    def at(self, step: int) -> _Page:
        return _Page(self.words, step)


@dataclass(frozen=True)
class _Page:
    words: Batch
    step: int

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.words[self.step * n : (self.step + 1) * n]


def build(config: DyckModel) -> Transformer:
    return Transformer(
        vocab=6,
        length=TOTAL,
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        positions=config.positions,
        norm_kind=config.norm_kind,
        gated=config.gated,
        mlp=config.mlp,
        mlp_width=config.mlp_width,
        bias=config.bias,
    )


def pretrain(config: DyckModel, seed: int, device: str) -> tuple[Transformer, dict[str, Any]]:
    """The trained model with averaged weights, and a report.

    AdamW, weight decay 0.1, 100 steps of warm-up then linear decay to 0. The corpus is drawn at once and read once:
    drawing small batches of Dyck words one after another would take longer than a step of training.
    """
    with seeded(seed):
        model = build(config).to(device)
    source = rng(seed, "training", device=device)
    best = Best(familiar().sample(10_000, rng=rng(seed, "held out", device=device))) if config.keep == "best" else None
    history = train(
        model,
        Corpus(familiar().sample(config.steps * config.batch_size, rng=source)),
        steps=config.steps,
        batch_size=config.batch_size,
        rng=source,
        lr=config.lr,
        weight_decay=0.1,
        schedule="linear",
        warmup=config.warmup,
        clip=config.clip,
        ema=config.decay,
        every=config.steps if best is None else config.looks,
        evaluate=None if best is None else best.measure,
        callbacks=() if best is None else (best.look,),
        stop=None if best is None else best.perfect,
        progress=False,
        precision="tf32",
    )
    if best is None:
        history.apply_average(model)
    else:
        model.load_state_dict(best.weights, strict=False)
    model.eval()
    sample = familiar().sample(2000, rng=rng(seed, "optimal", device=device))
    return model, {
        "loss": float(history.loss[-min(100, len(history.loss)) :].mean()),
        "weights of step": config.steps if best is None else best.step,
        "best accuracy": None if best is None else best.accuracy,
        "optimal loss": familiar().optimal_loss(sample),
        "closing accuracy": _repeated(model, familiar(), rng(seed, "familiar", device=device)),
        "closing accuracy, unfamiliar": _repeated(model, unfamiliar(), rng(seed, "unfamiliar", device=device)),
    }


class Best:
    """Remembers the averaged weights with the best accuracy on closing brackets; among equals the first.

    Here a closing bracket counts as right when it is the likeliest of all tokens, as in the released code.
    """

    def __init__(self, words: Batch) -> None:
        self.words, self.accuracy, self.step = words, -1.0, 0
        self.weights: dict[str, Tensor] = {}
        self._seen: dict[str, Tensor] = {}

    def measure(self, model: Transformer) -> dict[str, float]:
        # Training asks about the weights first, then about their average: what is seen last is the average.
        self._seen = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        return {"closing": closing_share(model, self.words, among="all")}

    def look(self, step: int, model: Transformer, metrics: dict[str, float]) -> None:
        if metrics["ema/closing"] > self.accuracy:
            self.accuracy, self.step, self.weights = metrics["ema/closing"], step, self._seen

    @staticmethod
    def perfect(step: int, metrics: dict[str, Any]) -> Any:
        """Nothing can be better, and the first of equals is kept: the rest of the training would change nothing."""
        return metrics["ema/closing"] == 1.0


def _repeated(model: Transformer, world: Dyck, source: torch.Generator) -> list[float]:
    return [closing_share(model, world.sample(1000, rng=source)) for _ in range(5)]


@torch.no_grad()
def closing_share(model: Transformer, batch: Batch, among: str = "closing") -> float:
    """Share of closing brackets that are the model's most probable token among those that close, or among all."""
    logits = model(batch.inputs)
    closing = (batch.targets < 4) & (batch.targets % 2 == 1)
    best = logits.argmax(-1) if among == "all" else 2 * logits[..., 1:4:2].argmax(-1) + 1
    return float((best == batch.targets)[closing].double().mean())


@dataclass(frozen=True)
class Prompts:
    """Prefixes as lists, with room for what completes them."""

    strings: list[list[int]]

    @property
    def room(self) -> Tensor:
        return torch.tensor([TOTAL - len(string) for string in self.strings])

    def __len__(self) -> int:
        return len(self.strings)

    def __mul__(self, times: int) -> Prompts:
        """All prefixes, then all of them again."""
        return Prompts(self.strings * times)

    def cut(self, erased: int) -> Prompts:
        """Each prefix without its last tokens; the start token stays."""
        return Prompts([string[: max(len(string) - erased, 1)] for string in self.strings])

    @classmethod
    def drawn(cls, n: int, source: torch.Generator, low: int = 25, high: int = 31) -> Prompts:
        """START and the first 25 to 31 brackets of unfamiliar words."""
        tokens, lengths = unfamiliar().prompts(n, low, high, rng=source)
        return cls([row[:cut] for row, cut in zip(tokens.tolist(), lengths.tolist())])


class Writer:
    """The model at work: completes prompts and says which completions are Dyck words."""

    def __init__(self, model: Transformer, points: tuple[str, ...] = ()) -> None:
        self.model, self.world = model, unfamiliar()
        self.points = points
        self.device = next(model.parameters()).device

    def generator(self) -> ModelGenerator:
        return ModelGenerator(self.model, self.points)

    def complete(
        self,
        decoder: Decoder,
        prompts: Prompts,
        seed: tuple[Any, ...],
        probe: TrainedProbe | None = None,
        verifier: Verifier | None = None,
        trace: bool = False,
    ) -> Generations:
        """With a probe, the verifier reads the generator's own activations."""
        generator = self.generator()
        if probe is not None:
            verifier = ProbeVerifier(generator, "ln_final", probe.network)
        return decoder.generate(
            generator,
            prompts.strings,
            max_new=prompts.room,
            verifier=verifier,
            eos=self.world.end_token,
            rng=rng(*seed),
            trace=trace,
        )

    def right(self, done: Generations) -> Tensor:
        """Which rows are START, 32 balanced brackets, END."""
        return self.world.contains(done.tokens, done.lengths)


@dataclass(frozen=True)
class Errors:
    """Wrong completions cut after their first wrong token, and as many correct prefixes of the same lengths."""

    wrong: list[list[int]]
    correct: list[list[int]]

    @property
    def inducing(self) -> Prompts:
        """The prefixes after which the model erred."""
        return Prompts([string[:-1] for string in self.wrong])


def harvest(writer: Writer, wanted: int, seed: int, most: int, batch: int) -> tuple[Errors, int]:
    """Complete unfamiliar prompts with nucleus 0.9 until `wanted` errors are found; and how many prompts it took."""
    source = rng(seed, "harvest", device=writer.device)
    wrong: list[list[int]] = []
    tried = 0
    while len(wrong) < wanted and tried < most:
        drawn = Prompts.drawn(min(batch, most - tried), source)
        done = writer.complete(Sampling(top_p=0.9), drawn, (seed, "harvest", tried))
        place = writer.world.errors(done.tokens, done.lengths)[0].tolist()
        # A string without an error that is not a word has not ended: cannot happen, the room is exactly enough.
        wrong += [done.string(row)[: at + 1] for row, at in enumerate(place) if at >= 0]
        tried += len(drawn)
    words = whole_words(max(len(wrong), 1), rng(seed, "correct", device=writer.device))
    return Errors(wrong, [word[: len(string)] for word, string in zip(words, wrong)]), tried


def whole_words(n: int, source: torch.Generator) -> list[list[int]]:
    """START, an unfamiliar word, END."""
    tokens, _ = unfamiliar().prompts(n, LENGTH, LENGTH, rng=source)
    return torch.nn.functional.pad(tokens, (0, 1), value=unfamiliar().end_token).tolist()


def fit_verifier(writer: Writer, errors: Errors, seed: int, point: str = "ln_final", layers: int = 1) -> TrainedProbe:
    """A probe on the activations of wrong (0) and correct (1) prefixes."""
    strings = errors.wrong + errors.correct
    labels = torch.tensor([0] * len(errors.wrong) + [1] * len(errors.correct), device=writer.device)
    features = last_features(writer.generator(), strings, [point])[point]
    return train_probe(features, labels, rng=rng(seed, "probe", point), layers=layers)
