"""Pictures of matrices and the film of the value matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sandlab import figures
from sandlab.lenses.topics.pictures import draw_topic_matrix, value_film


def test_lines_stand_between_topics_and_the_mask_is_left_out() -> None:
    _, (axis,) = figures.new()
    draw_topic_matrix(axis, np.eye(13), 4)
    assert axis.images[0].get_array().shape == (12, 12)
    assert sorted({float(line.get_ydata()[0]) for line in axis.lines if len(set(line.get_ydata())) == 1}) == [3.5, 7.5]


def test_a_film_shows_every_evaluation(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 13, 13))
    film = value_film(np.array([0.0, 5.0, 10.0]), values, {"key": np.ones(3), "value": np.arange(3.0)}, 4, border=5.0)
    path = figures.save_film(film, tmp_path / "film.gif", fps=4)
    assert path.stat().st_size > 1000
