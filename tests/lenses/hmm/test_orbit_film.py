"""The film of the orbit: what it shows, and that it can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandlab.lenses.hmm.identifiability import identifiable
from sandlab.lenses.hmm.orbit_film import OrbitFilm
from sandlab.worlds.hmm.instances import named_hmm


def test_one_token_predictions_stay_and_two_token_predictions_come_back_at_the_permutation() -> None:
    single, double = OrbitFilm(frames=7).differences()
    assert single.max() < 1e-13
    assert double[1:-1].min() > 1e-4
    assert double[-1] < 1e-12


def test_the_film_and_its_strip_can_be_written(tmp_path: Path) -> None:
    film = OrbitFilm(frames=3)
    assert film.save(tmp_path / "orbit.gif").read_bytes()[:3] == b"GIF"
    assert len(film.strip().axes) == 12


@pytest.mark.parametrize(("name", "task"), [("hmm-thm6", "3|1"), ("hmm-2x2", "2|1")])
def test_a_task_that_does_not_identify_comes_with_an_explicit_second_model(name: str, task: str) -> None:
    found = identifiable(named_hmm(name), [task], restarts=0)
    assert found.twin is not None
    assert found.distance > 0.01
    assert "not identifiable" in found.verdict
