"""Films on the pages of two chapters: a small model is trained while the documentation is built, and watched."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sandlab as sl
from sandlab import figures
from sandlab.learning.distillation.checkpoint_store import CheckpointStore, keep_weights
from sandlab.learning.experiment import Experiment, Members, Training, train_members
from sandlab.lenses.distillation.films import UncertaintyFilm
from sandlab.lenses.topics.dynamics import attention_norms, stage_times
from sandlab.lenses.topics.pictures import value_film
from sandlab.models.distillation.published import bert
from sandlab.models.topics.one_layer import OneLayerTopicsConfig
from sandlab.worlds.topics.documents import LDATopics

GRAMMAR = (
    "A small BERT learns sentences of cfg3b below the symbols 10, 11 and 12. Each token of one sentence is masked "
    "alone; the upper squares show how uncertain the model is about it at each checkpoint, the lower ones how "
    "uncertain the exact posterior is."
)
VALUES = (
    "The value matrix while keys, queries and values are trained together by SGD from near zero, and their norms as "
    "shares of their largest value. In the shaded first stage the values learn the blocks of the topics while "
    "attention stays uniform; then keys and queries grow."
)


def grammar_film(steps: int = 320) -> bytes:
    """A film of a teacher's 16 checkpoints and its start."""
    world = sl.worlds.MaskedGrammar("cfg3b", root="10|11|12")
    model = bert(world.vocab, world.length, 8, layers=2, dropout=0.0)
    how = Training(steps, batch_size=64, lr=5e-3, schedule="cosine", evals=min(16, steps), eval_examples=8)
    experiment = Experiment(world, model, how, 1, probes=(keep_weights,))
    store = CheckpointStore.of(train_members(Members(experiment, (0,))), model)
    film = UncertaintyFilm(world, store, rng=sl.rng(3))
    with tempfile.TemporaryDirectory() as folder:
        return film.save(Path(folder) / "film.gif").read_bytes()


def topics_film(steps: int = 400) -> bytes:
    """A film of 20 moments of the setting in which the stages are clearest (`topics/two-stages`)."""
    how = Training(steps, batch_size=40, lr=20.0, optimizer="sgd", evals=min(20, steps), eval_examples=8)
    model = OneLayerTopicsConfig(vocab=101, read=48, std=0.005)
    experiment = Experiment(LDATopics(last=48), model, how, 1, probes=(attention_norms, keep_weights))
    runs = train_members(Members(experiment, (0,)))
    norms = {part: runs.metrics[f"{part} norm"][0, :, 0] for part in ("key", "query", "value")}
    times = stage_times(runs.eval_steps, norms).tenth
    border = min(times["key"], times["query"])
    film = value_film(
        runs.eval_steps,
        np.asarray(runs.metrics["kept.value"][0], dtype=float),
        norms,
        10,
        border=border if np.isfinite(border) else None,
    )
    with tempfile.TemporaryDirectory() as folder:
        return figures.save_film(film, Path(folder) / "film.gif").read_bytes()


FILMS: dict[tuple[str, str], tuple[str, Callable[[], bytes]]] = {
    ("worlds", "masked-grammar"): (GRAMMAR, grammar_film),
    ("models", "one-layer-topics"): (VALUES, topics_film),
}
"""(kind, name of the page) → caption, and how the film is made."""
