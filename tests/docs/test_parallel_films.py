"""Films of spins and of a refinement on the pages of worlds."""

from __future__ import annotations

import io

from PIL import Image

import sandlab as sl


def test_films_have_a_frame_for_each_step_and_stand_on_pages_that_exist(docs):
    films = docs("parallel_films")
    assert all(name in sl.names(kind) for kind, name in films.FILMS)
    assert Image.open(io.BytesIO(films.spin_film(steps=3))).n_frames == 4
    assert Image.open(io.BytesIO(films.refinement_film(steps=2))).n_frames > 2
    assert docs("thing_pages").pictures("worlds", "ising-clique", sl.worlds.IsingClique).keys() >= {
        "ising-clique-film.gif"
    }
