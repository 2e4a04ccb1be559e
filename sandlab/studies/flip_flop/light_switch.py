"""Alice, Bob and the light switch: the flip-flop in English, put to language models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.training import train
from sandlab.lenses.flip_flop.light_switch import HuggingFaceReader, Reader, WordReader, light_switch_accuracy
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Claim
from sandlab.studies.flip_flop.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlop, light_switch_text

VOCABULARY = (
    ".",
    "Alice",
    "Bob",
    "The",
    "a",
    "an",
    "apple",
    "banana",
    "eats",
    "is",
    "light",
    "off",
    "on",
    "the",
    "turned",
    "turns",
)


@dataclass(frozen=True)
class Settings:
    """A small word-level model trained on strings of up to `trained` tokens.

    `folder`: local Hugging Face models to be asked instead, several with commas between them, from small to large;
    `demonstration` is the length of the complete story that they are shown first.
    """

    seeds: int = 5
    trained: int = 16
    lengths: tuple[int, ...] = (8, 16, 32, 64)
    prompts: int = 200
    steps: int = 700
    folder: str = ""
    demonstration: int = 16


@dataclass(frozen=True)
class ReaderJob:
    seed: int
    device: str
    trained: int
    lengths: tuple[int, ...]
    prompts: int
    steps: int
    folder: str
    demonstration: int


@dataclass(frozen=True)
class Story:
    """Flip-flop strings told in English, one token per word; the state words "on" and "off" of reads count."""

    length: int
    ignore: float = 0.8

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = FlipFlop.ignoring(self.ignore, length=self.length).sample(n, rng=rng)
        strings = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
        table, sizes = (part.to(rng.device) for part in _sentences())
        which = 2 * strings[:, 0::2] + strings[:, 1::2] - 3
        ends = sizes[which].cumsum(1)
        longest = 6 * which.shape[1]
        # Every sentence is written at its place; the blanks of shorter ones fall beyond the end of the story.
        place = (ends - sizes[which]).unsqueeze(-1) + torch.arange(6, device=rng.device)
        place = torch.where(torch.arange(6, device=rng.device) < sizes[which].unsqueeze(-1), place, longest)
        tokens = torch.zeros(n, longest + 1, dtype=torch.long, device=rng.device)
        tokens.scatter_(1, place.flatten(1), table[which].flatten(1))
        inputs, targets = tokens[:, : longest - 1], tokens[:, 1:longest]
        return Batch(inputs, targets, inputs == VOCABULARY.index("turned"))


@cache
def _sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """The six sentences as words (instruction · 2 + symbol; blanks are 0), and how many words each has."""
    strings = torch.tensor([[kind, 3 + symbol] for kind in range(3) for symbol in range(2)])
    texts = light_switch_text(strings, ask=False)
    rows = [[VOCABULARY.index(word) for word in text.replace(".", " .").split()] for text in texts]
    table = torch.tensor([row + [0] * (6 - len(row)) for row in rows])
    return table, torch.tensor([len(row) for row in rows])


def read_stories(job: ReaderJob) -> dict[str, Any]:
    """Accuracy at each length, of a trained word model or of the model in `folder`."""
    reader: Reader
    if job.folder:
        reader = HuggingFaceReader(job.folder, job.device)
    else:
        with seeded(job.seed):
            model = Transformer(vocab=len(VOCABULARY), length=1024, layers=2, heads=2, width=64, positions="rotary")
        model = model.to(job.device)
        train(
            model, Story(job.trained), steps=job.steps, batch_size=32, lr=2e-3, schedule="linear", warmup=50,
            rng=rng(job.seed, "stories", device=job.device),
        )  # fmt: skip
        reader = WordReader(model, VOCABULARY)
    shown = job.demonstration if job.folder else 0
    rates = [
        light_switch_accuracy(
            reader, length=length, prompts=job.prompts, demonstration=shown, rng=rng(job.seed, "test")
        )
        for length in job.lengths
    ]
    return {"accuracy": np.array([1 - rate.rate for rate in rates])}


@study(
    "flip-flop/light-switch",
    title="Told in English, the flip-flop gets harder with every sentence",
    source=f"{SOURCE}, Figure 2 (right, result R3)",
    quick=Settings(),
    full=Settings(seeds=5, trained=32, lengths=(8, 16, 32, 64, 128), prompts=500, steps=4000),
    claims=[
        Claim(
            "short",
            "A language model answers short stories.",
            f"{SOURCE}, (R3)",
            "accuracy at the shortest length",
            Above(0.8),
        ),
        Claim(
            "decays",
            "Accuracy falls with the length of the story.",
            f"{SOURCE}, (R3)",
            "accuracy at the shortest minus at the longest length",
            Above(0.0),
            paper="all models decay with length, none is robust",
        ),
        Claim(
            "published-models-decay",
            "Accuracy of GPT-2, GPT-2-large, GPT-2-xl, Pythia-12B and GPT-NeoX-20B falls with the story's length.",
            f"{SOURCE}, (R3)",
            "accuracy at the shortest minus at the longest length, one value per given model",
            Above(0.0),
            paper="all decay",
            presets=(),
        ),
        Claim(
            "chat-dialogue",
            "A chat model that is told the rules answers strings of up to about 400 tokens and errs on longer ones.",
            f"{SOURCE}, Figure 8 (a dialogue; the question is `worlds.chat_prompt`)",
            "accuracy up to 400 tokens minus accuracy beyond",
            Above(0.0),
            exact=True,
            paper="right up to about 400 tokens",
            presets=(),
        ),
        Claim(
            "larger-is-better",
            "Larger published models answer more stories than smaller ones.",
            f"{SOURCE}, (R3)",
            "mean accuracy of the last given model minus that of the first",
            Above(0.0),
            exact=True,
            paper="larger is better",
            presets=(),
        ),
    ],
)
def light_switch(config: Settings, lab: Lab) -> Outcome:
    """Alice turns the light on or off, Bob eats, and after many sentences: "The light is turned".

    The published figure asks GPT-2 to GPT-NeoX-20B; those weights cannot be shipped. `--set folder=SMALL,LARGE` asks
    causal Hugging Face models in local folders, each prompt one complete story of 16 tokens followed by the question.
    Without folders, a two-layer word-level transformer is trained here on short stories and asked longer ones (the
    dotted line is the length it was trained on): the protocol is the same, the model is a stand-in, and the claims
    about the published models count as not run.
    """
    folders = [folder for folder in config.folder.split(",") if folder]
    asked = [(0, folder) for folder in folders] or [(seed, "") for seed in range(config.seeds)]
    jobs = [
        ReaderJob(
            seed, lab.device, config.trained, config.lengths, config.prompts, config.steps, folder,
            config.demonstration,
        )
        for seed, folder in asked
    ]  # fmt: skip
    found = lab.map(read_stories, jobs, label="stories")
    accuracy = np.stack([result["accuracy"] for result in found])
    fall = accuracy[:, 0] - accuracy[:, -1]
    measurements: dict[str, Any] = {"short": accuracy[:, 0], "decays": fall}
    if folders:
        measurements["published-models-decay"] = fall
        measurements["larger-is-better"] = float(accuracy[-1].mean() - accuracy[0].mean())
    figure, (axis,) = figures.new()
    if folders:
        for folder, row in zip(folders, accuracy):
            axis.plot(config.lengths, row, "o-", label=folder.rstrip("/").split("/")[-1])
    else:
        figures.band(axis, config.lengths, accuracy, label="word model trained here")
        axis.axvline(config.trained, color="#555555", linestyle=":")
    axis.set_xscale("log", base=2)
    axis.set(xlabel="length of the flip-flop string (tokens)", ylabel="accuracy of the last read", ylim=(0.4, 1.02))
    axis.legend()
    rows = [
        {"model": folder or f"trained here, seed {seed}", **{str(n): float(a) for n, a in zip(config.lengths, row)}}
        for (seed, folder), row in zip(asked, accuracy)
    ]
    return Outcome(measurements, {"accuracy": figure}, {"accuracy": rows})
