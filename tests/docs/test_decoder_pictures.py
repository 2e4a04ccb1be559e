"""Every decoder has a picture on its page, small enough for the web."""

from __future__ import annotations

import pytest

import sandlab as sl


@pytest.fixture(scope="module")
def pictures(docs):
    module = docs("decoder_pictures")
    module.RUNS = 200
    return module


@pytest.mark.gate(5)
@pytest.mark.parametrize("name", sl.names("decoders"))
def test_every_decoder_is_drawn(pictures, name):
    drawn = pictures.decoder_picture(name)
    assert drawn.startswith(b"<?xml") and len(drawn) < 300_000


def test_films_move_and_have_a_still_strip_beside_them(pictures):
    moving, still = pictures.decoder_film("backtracking")
    assert moving[:6] == b"GIF89a" and b"<svg" in still and len(still) < 300_000
    assert pictures.decoder_film("greedy") is None
    assert set(pictures.FILMS) <= set(sl.names("decoders"))
