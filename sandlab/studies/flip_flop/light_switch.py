"""Alice, Bob and the light switch: the flip-flop in English, put to language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.training import train
from sandlab.lenses.light_switch import HuggingFaceReader, Reader, WordReader, light_switch_accuracy
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Claim
from sandlab.studies.flip_flop.runs import SOURCE
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop import FlipFlop, light_switch_text

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
    """A small word-level model trained on strings of up to `trained` tokens; `folder`: a local Hugging Face model."""

    seeds: int = 5
    trained: int = 16
    lengths: tuple[int, ...] = (8, 16, 32, 64)
    prompts: int = 200
    steps: int = 700
    folder: str = ""


@dataclass(frozen=True)
class ReaderJob:
    seed: int
    device: str
    trained: int
    lengths: tuple[int, ...]
    prompts: int
    steps: int
    folder: str


@dataclass(frozen=True)
class Story:
    """Flip-flop strings told in English, one token per word; the state words "on" and "off" of reads count."""

    length: int
    ignore: float = 0.8

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = FlipFlop.ignoring(self.ignore, length=self.length).sample(n, rng=rng)
        texts = light_switch_text(torch.cat([batch.inputs, batch.targets[:, -1:]], 1).cpu(), ask=False)
        rows = [[VOCABULARY.index(word) for word in text.replace(".", " .").split()] for text in texts]
        longest = max(map(len, rows))
        tokens = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=rng.device)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        return Batch(inputs, targets, inputs == VOCABULARY.index("turned"))


def read_stories(job: ReaderJob) -> dict[str, Any]:
    """Accuracy at each length, of a trained word model or of the model in `folder`."""
    reader: Reader
    if job.folder:
        reader = HuggingFaceReader(job.folder, job.device)
    else:
        with seeded(job.seed):
            model = Transformer(vocab=len(VOCABULARY), length=1024, layers=2, heads=2, width=64, positions="rotary").to(
                job.device
            )
        train(
            model, Story(job.trained), steps=job.steps, batch_size=32, lr=2e-3, schedule="linear", warmup=50,
            rng=rng(job.seed, "stories", device=job.device),
        )  # fmt: skip
        reader = WordReader(model.cpu(), VOCABULARY)
    rates = [
        light_switch_accuracy(reader, length=length, prompts=job.prompts, demonstration=0, rng=rng(job.seed, "test"))
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
    ],
)
def light_switch(config: Settings, lab: Lab) -> Outcome:
    """Alice turns the light on or off, Bob eats, and after many sentences: "The light is turned".

    The published figure asks GPT-2 to GPT-NeoX-20B; those weights cannot be shipped. `--set folder=PATH` asks any
    causal Hugging Face model in a local folder. Without one, a two-layer word-level transformer is trained here on
    short stories and asked longer ones: the protocol is the same, the model is a stand-in, and the published models
    count as not run.
    """
    seeds = range(1 if config.folder else config.seeds)
    jobs = [
        ReaderJob(seed, lab.device, config.trained, config.lengths, config.prompts, config.steps, config.folder)
        for seed in seeds
    ]
    found = lab.map(read_stories, jobs, label="stories")
    accuracy = np.stack([result["accuracy"] for result in found])
    measurements = {"short": accuracy[:, 0], "decays": accuracy[:, 0] - accuracy[:, -1]}
    figure, (axis,) = figures.new()
    figures.band(axis, config.lengths, accuracy, label=config.folder or "word model trained here")
    axis.axvline(config.trained, color="#555555", linestyle=":")
    axis.set_xscale("log", base=2)
    axis.set(xlabel="length of the flip-flop string (tokens)", ylabel="accuracy of the last read", ylim=(0.4, 1.02))
    axis.legend()
    return Outcome(measurements, {"accuracy": figure})
