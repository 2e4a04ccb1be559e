"""A language model of small programs, the test cases it writes, the errors it makes, and verifiers trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.trained import ProbeVerifier, TrainedProbe, last_features, train_probe
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.verifier.append_cases import AppendCases

# Names in the strings that verifiers are trained on; the names of the tests are others.
TRAINING_NAMES = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")
SMALL_WORLD = AppendCases(
    cases=4, longest=2, functions=("append", "prepend", "pop", "max"), favour=0.7, examples=1, meaningful=0.9
)
FULL_WORLD = AppendCases(favour=0.7)


@dataclass(frozen=True)
class CodeModel:
    """Documents, architecture and training of the language model."""

    world: AppendCases = SMALL_WORLD
    layers: int = 2
    heads: int = 4
    width: int = 64
    mlp_width: int = 128
    steps: int = 2400
    batch_size: int = 8
    lr: float = 4e-3
    ema: float = 0.99


@dataclass(frozen=True)
class Shortened:
    """Documents without the padding that no document of the batch needs."""

    world: AppendCases

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = self.world.sample(n, rng=rng)
        longest = int(batch.mask.sum(1).max())
        return Batch(batch.inputs[:, :longest], batch.targets[:, :longest], batch.mask[:, :longest], batch.truth)


def pretrain(config: CodeModel, seeds: Sequence[int], device: str) -> list[tuple[Transformer, float]]:
    """One model per seed, all trained at once on documents of their own: the averaged weights, and the last losses.

    AdamW, weight decay 0.1, some steps of warm-up then linear decay to 0. Scores fall off with the distance (ALiBi):
    a model with learned or rotary positions needs several times as long to learn to copy a list.
    """
    population = Population(lambda seed: build(config), seeds=seeds).to(device)
    histories = train(
        population,
        # A recorded step on a GPU needs batches of one size.
        config.world if device.startswith("cuda") else Shortened(config.world),
        steps=config.steps,
        batch_size=config.batch_size,
        rng=rng(seeds[0], "training", device=device),
        lr=config.lr,
        weight_decay=0.1,
        schedule="linear",
        warmup=min(100, config.steps // 4),
        clip=1.0,
        ema=config.ema,
        every=config.steps,
        progress=False,
        precision="tf32",
        data="separate",
    )
    return [
        (history.apply_average(population.member(place)).eval(), float(history.loss[-100:].mean()))
        for place, history in enumerate(histories)
    ]


def build(config: CodeModel) -> Transformer:
    return Transformer(
        vocab=config.world.vocab,
        length=config.world.length,
        layers=config.layers,
        heads=config.heads,
        width=config.width,
        mlp_width=config.mlp_width,
        positions="alibi",
    )


def random_names(count: int, seed: int) -> list[str]:
    """Names of three random letters that no verifier was trained on."""
    source = rng(seed, "names")
    names: list[str] = []
    while len(names) < count:
        name = "".join(chr(ord("a") + int(letter)) for letter in torch.randint(26, (3,), generator=source))
        if name not in (*TRAINING_NAMES, *names):
            names.append(name)
    return names


class CaseWriter:
    """The model at work: writes test cases of append for functions of given names."""

    def __init__(self, model: Transformer, world: AppendCases) -> None:
        self.model, self.world = model, world
        self.device = next(model.parameters()).device
        # Every line at its longest, and END.
        self.room = world.cases * (4 * world.longest + 14) + 1

    def generator(self) -> ModelGenerator:
        return ModelGenerator(self.model)

    def prompts(self, names: Sequence[str], seed: int) -> list[list[int]]:
        """One prompt for each name; its example has numbers of its own."""
        return [self.world.prompt(name, rng=rng(seed, "prompt", name)) for name in names]

    def complete(
        self,
        decoder: Decoder,
        prompts: list[list[int]],
        seed: tuple[Any, ...],
        *,
        point: str = "",
        probe: TrainedProbe | None = None,
        verifier: Verifier | None = None,
    ) -> Generations:
        """With a probe, the verifier reads the generator's own activation `point`."""
        generator = self.generator()
        if probe is not None:
            verifier = ProbeVerifier(generator, point, probe.network)
        return decoder.generate(
            generator, prompts, max_new=self.room, verifier=verifier, eos=self.world.end_token, rng=rng(*seed)
        )

    def text(self, done: Generations, row: int) -> str:
        return self.world.render(done.generated(row))


@dataclass(frozen=True)
class Labelled:
    """Prefixes of the model's own writing: the last token is wrong (0), or all of it is right (1)."""

    strings: list[list[int]]
    labels: list[int]


def harvest(writer: CaseWriter, completions: int, seed: int) -> tuple[Labelled, Labelled]:
    """Training strings for verifiers of tokens and of lines, from samples at temperature 1.

    tokens   a wrong completion gives its prefix up to the first wrong token (0) and up to a random earlier one (1); a
             correct completion, up to a random token (1)
    lines    a wrong completion gives its prefix up to the end of the first wrong line (0) and of the line before (1);
             a correct completion, up to the end of a random line (1)
    Botta, Li et al. 2025, code generation; the rules are those of the released code.
    """
    world = writer.world
    each = -(-completions // len(TRAINING_NAMES))
    done = writer.complete(Sampling(), writer.prompts(TRAINING_NAMES, seed) * each, (seed, "harvest"))
    chance = rng(seed, "places")
    tokens, lines = Labelled([], []), Labelled([], [])

    def add(kind: Labelled, string: list[int], label: int) -> None:
        kind.strings.append(string)
        kind.labels.append(label)

    def below(high: int) -> int:
        return int(torch.randint(high, (1,), generator=chance))

    for row in range(len(done)):
        string, begin = done.string(row), int(done.starts[row])
        error = world.first_error(string)
        ends = [place for place in range(begin, len(string)) if string[place] in (world.newline, world.end_token)]
        if error is None:
            add(tokens, string[: begin + 1 + below(len(string) - begin)], 1)
            add(lines, string[: ends[below(len(ends))] + 1], 1)
        elif error[0] < len(string):
            add(tokens, string[: error[0] + 1], 0)
            if error[0] > begin:
                add(tokens, string[: begin + 1 + below(error[0] - begin)], 1)
            after = [place for place in ends if place >= error[0]]
            before = [place for place in ends if place < error[0]]
            if after:
                add(lines, string[: after[0] + 1], 0)
            add(lines, string[: before[-1] + 1] if before else string[:begin], 1)
    return tokens, lines


def fit_verifiers(
    writer: CaseWriter,
    data: Labelled,
    points: Sequence[str],
    depths: Sequence[int],
    seed: int,
    *,
    steps: int,
    hidden: int,
) -> dict[tuple[str, int], TrainedProbe]:
    """(activation, depth of the probe) → probe; the deeper ones only at the last of the activations."""
    features = last_features(writer.generator(), data.strings, list(points))
    labels = torch.tensor(data.labels, device=writer.device)
    wanted = [(point, 1) for point in points] + [(points[-1], depth) for depth in depths if depth > 1]
    return {
        (point, depth): train_probe(
            features[point], labels, rng=rng(seed, "probe"), layers=depth, steps=steps, hidden=hidden
        )
        for point, depth in wanted
    }
