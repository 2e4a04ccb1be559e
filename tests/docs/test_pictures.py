"""Every circuit and every world that can be built without arguments has a picture on its page."""

from __future__ import annotations

import inspect

import pytest

import sandlab as sl


@pytest.fixture(scope="module")
def pictures(docs):
    return docs("pictures")


@pytest.mark.gate(8)
@pytest.mark.parametrize("name", sl.names("circuits"))
def test_every_circuit_is_drawn(pictures, name):
    drawn = pictures.circuit_picture(name)
    assert drawn.startswith(b"<?xml") and len(drawn) < 300_000


@pytest.mark.parametrize("name", sl.names("worlds"))
def test_every_world_can_be_drawn(name):
    parameters = inspect.signature(sl.get("worlds", name)).parameters.values()
    required = [each for each in parameters if each.default is each.empty]
    assert not required, f"{name} cannot be built without arguments: its page has no picture"


@pytest.mark.gate(12)
@pytest.mark.parametrize("name", sl.names("worlds"))
def test_every_world_is_drawn(pictures, name):
    drawn = pictures.world_picture(sl.get("worlds", name)())
    assert drawn.startswith(b"<?xml") and len(drawn) < 300_000


LENSES = [name for name in sl.names("lenses") if ".reasoning." in sl.get("lenses", name).__module__]


@pytest.mark.parametrize("name", LENSES)
def test_every_lens_on_chains_of_thought_is_drawn(docs, name):
    drawn = docs("lens_pictures").lens_picture(name)
    assert drawn.startswith(b"<?xml") and len(drawn) < 300_000
