"""Pictures of stage-wise learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sandlab as sl
from sandlab.lenses.ngrams.pictures import AttentionSnapshots, draw_stages
from sandlab.lenses.ngrams.stages import Plateau, Stages
from sandlab.worlds.ngrams.in_context import InContextNgrams


def test_stages_are_drawn_with_four_maps_of_each_head_above_the_curves() -> None:
    stages = Stages([Plateau(0, 30, 1.0), Plateau(60, 90, 0.8)])
    steps, losses = np.arange(0, 100, 10), np.ones((3, 10))
    figure = draw_stages(steps, losses, np.zeros((10, 2, 5, 5)), stages, {"bigram": 0.9}, title="stages")
    assert len(figure.axes) == 2 * 4 + 1
    assert len(figure.axes[-1].lines) == 3 + 1 and len(figure.axes[-1].patches) == 2


def test_snapshots_keep_a_frame_per_evaluation_and_can_be_saved(tmp_path: Path) -> None:
    world = InContextNgrams(states=3, order=2, length=8)
    model = sl.models.SimplifiedTransformer(vocab=3, length=8, heads=2)
    snapshots = AttentionSnapshots(world.sample(1, rng=sl.rng(2)).inputs, names="layers.0.attention.pattern")
    sl.learning.train(model, world, steps=6, batch_size=8, rng=sl.rng(3), callbacks=[snapshots], every=2)
    assert snapshots.steps == [0, 2, 4, 6]
    assert snapshots.maps("layers.0.attention.pattern").shape == (4, 2, 8, 8)
    path = snapshots.save(tmp_path / "snapshots.gif")
    assert path.read_bytes()[:3] == b"GIF"
