"""Alice, Bob and the light switch: the flip-flop in English, as a prompt for language models.

Alice turns the light on or off, Bob eats, and after many sentences: "The light is turned". The published figure asks
GPT-2 to GPT-NeoX-20B; those weights cannot be shipped. `--set folder=SMALL,LARGE` asks causal Hugging Face models in
local folders, each prompt one complete story of 16 tokens followed by the question. Without folders, a two-layer
word-level transformer is trained here on short stories and tested on longer ones (the dotted line is the length it was
trained on): the protocol is the same, the model is a stand-in, and the claims about published models are listed as not
measured. Answers of a chat model to `worlds.chat_prompt`, collected by hand, are given by `--set chat=…`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Training
from sandlab.lenses.flip_flop.hugging_face_reader import HuggingFaceReader
from sandlab.lenses.flip_flop.probes import StoryAccuracy, story_accuracy
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured, Slope
from sandlab.studies.flip_flop._shared import SOURCE
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.flip_flop.light_switch import VOCABULARY, LightSwitchStory


@dataclass(frozen=True)
class Settings:
    """Word-level models to be trained, or given ones, and the stories they are tested on.

    folder          local Hugging Face models to be tested instead, separated by commas, from small to large
    demonstration   length of the complete story that those are shown first
    chat            answers of a chat model: (length of the string in tokens, share of right answers)
    """

    model: Experiment
    lengths: tuple[int, ...] = (8, 16, 32, 64)
    prompts: int = 200
    folder: str = ""
    demonstration: int = 16
    chat: tuple[tuple[int, float], ...] = ()


def word_model(trained: int, steps: int) -> Experiment:
    return Experiment(
        world=LightSwitchStory(trained),
        model=TransformerConfig(vocab=len(VOCABULARY), length=1024, layers=2, heads=2, width=64, positions="rotary"),
        training=Training(steps, batch_size=32, lr=2e-3, schedule="linear", warmup=50, evals=1, eval_examples=64),
        seeds=5,
    )


QUICK = Settings(word_model(16, steps=700))
study = Study(
    "flip-flop/light-switch",
    title="A word model answers every short light-switch story and loses a tenth of the long ones",
    source=SOURCE,
    at="Figure 2 (right, result R3)",
    quick=QUICK,
    full=Settings(word_model(32, steps=4000), lengths=(8, 16, 32, 64, 128), prompts=500),
    null=replace(QUICK, model=untrained(QUICK.model)),
)


@dataclass(frozen=True)
class FolderJob:
    """The stories of some settings, for the Hugging Face model in one folder."""

    settings: Settings
    folder: str
    device: str


def ask_folder(job: FolderJob) -> list[float]:
    """Accuracy at each length."""
    reader, stories = HuggingFaceReader(job.folder, job.device), job.settings
    return story_accuracy(reader, stories.lengths, stories.prompts, stories.demonstration)


@dataclass(frozen=True)
class Results:
    """Accuracy (model, length) of the models trained here, or of those in `folders`."""

    accuracy: np.ndarray
    lengths: tuple[int, ...]
    trained: int
    folders: list[str]
    chat: tuple[tuple[int, float], ...] = ()

    def published(self) -> np.ndarray:
        if not self.folders:
            raise NotMeasured("no folder with a Hugging Face model was given")
        return self.accuracy


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    folders = [folder for folder in settings.folder.split(",") if folder]
    if folders:
        jobs = [FolderJob(settings, folder, lab.device) for folder in folders]
        accuracy = np.array(lab.map(ask_folder, jobs, label="stories"))
    else:
        probe = StoryAccuracy(settings.lengths, settings.prompts)
        accuracy = lab.train(replace(settings.model, final=(probe,)), label="stories").final["accuracy"]
    assert isinstance(settings.model.world, LightSwitchStory)
    return Results(accuracy, settings.lengths, settings.model.world.length, folders, settings.chat)


@study.claim(Mean(above=0.8), at="(R3)")
def short(results: Results) -> np.ndarray:
    """A language model answers short stories.

    Accuracy at the shortest length.
    """
    return results.accuracy[:, 0]


@study.claim(Mean(above=0.0), at="(R3)", paper="all models decay with length, none is robust")
def decays(results: Results) -> np.ndarray:
    """Accuracy drops with the length of the story.

    Accuracy at the shortest minus at the longest length.
    """
    return results.accuracy[:, 0] - results.accuracy[:, -1]


@study.claim(Mean(above=0.0), at="(R3)", paper="all decay")
def published_models_decay(results: Results) -> np.ndarray:
    """Accuracy of GPT-2, GPT-2-large, GPT-2-xl, Pythia-12B and GPT-NeoX-20B drops with the story's length.

    Accuracy at the shortest minus at the longest length, one value per given model.
    """
    return results.published()[:, 0] - results.published()[:, -1]


@study.claim(
    Slope(above=0.0),
    at="Figure 8 (a dialogue; the question is `worlds.chat_prompt`)",
    paper="right up to about 400 tokens",
)
def chat_dialogue(results: Results) -> np.ndarray:
    """A chat model that is told the rules answers strings of up to about 400 tokens and errs on longer ones.

    Accuracy up to 400 tokens minus accuracy beyond: slope of the accuracies against "not longer than 400".
    """
    if not results.chat:
        raise NotMeasured("no answers of a chat model were given")
    lengths, right = np.array(results.chat).T
    return np.stack([lengths <= 400, right], 1)


@study.claim(Slope(above=0.0), at="(R3)", paper="larger is better")
def larger_is_better(results: Results) -> np.ndarray:
    """Larger published models answer more stories than smaller ones.

    Slope of the mean accuracy against the index of the given models, from small to large.
    """
    means = results.published().mean(1)
    if len(means) < 2:
        raise NotMeasured("fewer than two Hugging Face models were given")
    return np.stack([np.arange(len(means)), means], 1)


@study.table
def accuracy(results: Results) -> Rows:
    names = results.folders or [f"trained here, seed {seed}" for seed in range(len(results.accuracy))]
    lengths = list(map(str, results.lengths))
    return [{"model": name, **dict(zip(lengths, row.tolist()))} for name, row in zip(names, results.accuracy)]


@study.figure
def accuracy_by_length(results: Results) -> dict[str, Figure]:
    figure, (axis,) = figures.new()
    for folder, row in zip(results.folders, results.accuracy):
        axis.plot(results.lengths, row, "o-", label=folder.rstrip("/").split("/")[-1])
    if not results.folders:
        figures.band(axis, results.lengths, results.accuracy, label="word model trained here")
        axis.axvline(results.trained, color="#555555", linestyle=":")
    axis.set_xscale("log", base=2)
    axis.set(xlabel="length of the flip-flop string (tokens)", ylabel="accuracy of the last read", ylim=(0.4, 1.02))
    axis.legend()
    return {"accuracy": figure}
