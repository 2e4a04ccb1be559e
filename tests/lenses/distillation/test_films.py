"""The film of a teacher's uncertainty: what its squares show, and that it can be written."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sandlab.learning.distillation.checkpoint_store import CheckpointStore
from sandlab.lenses.distillation.films import UncertaintyFilm
from sandlab.models.base import build, seeded
from sandlab.models.distillation.published import bert
from sandlab.random import rng
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar

TWINS = MaskedGrammar("S -> a a | b b", rate=0.4)


def film(world: MaskedGrammar) -> tuple[UncertaintyFilm, CheckpointStore]:
    """A teacher whose first checkpoint is all zeros."""
    config = bert(world.vocab, world.length, 2, layers=1, dropout=0.0)
    with seeded(0):
        drawn = build(config).state_dict()
    weights = {name: torch.stack([torch.zeros_like(value), 3 * value])[None] for name, value in drawn.items()}
    store = CheckpointStore(config, (0,), (0, 10), weights)
    return UncertaintyFilm(world, store, rng=rng(1)), store


def test_a_model_without_weights_guesses_and_others_show_their_entropy_at_each_masked_token() -> None:
    world = MaskedGrammar("cfg3b", root="7|8|9")
    found, store = film(world)
    assert found.entropies[0] == pytest.approx(log(world.vocab))
    sentence = [world.bos, *found.trees.tokens[0, : found.time].tolist()]
    for place in range(found.time):
        shown = list(sentence)
        shown[place + 1] = world.mask_token
        probs = store.model(0, 10)(torch.tensor([shown]))[0, place + 1].double().softmax(-1).detach().numpy()
        assert found.entropies[1, place] == pytest.approx(-(probs * np.log(probs)).sum(), rel=1e-4)


def test_the_lower_row_is_the_exact_posterior() -> None:
    """Of two equal tokens one is masked and the other shown through the channel: P = e(same)/(e(same) + e(other))."""
    found, _ = film(TWINS)
    other = 0.4 * 0.1 / 2
    same = 0.6 + 0.4 * 0.1 + other
    p = same / (same + other)
    assert found.exact == pytest.approx([-p * log(p) - (1 - p) * log(1 - p)] * 2)


def test_a_film_has_a_frame_for_each_checkpoint(tmp_path: Path) -> None:
    found, _ = film(TWINS)
    with Image.open(found.save(tmp_path / "tree.gif")) as written:
        assert written.n_frames == 2
    assert found.title(1).startswith("step 10: ")
