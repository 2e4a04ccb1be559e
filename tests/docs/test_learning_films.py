"""Films of small trainings on the pages of worlds and models."""

from __future__ import annotations

import sandlab as sl


def test_films_are_made_and_stand_on_pages_that_exist(docs):
    films = docs("learning_films")
    assert all(name in sl.names(kind) for kind, name in films.FILMS)
    for _, film in films.FILMS.values():
        assert film(steps=1)[:6] == b"GIF89a"
