"""Every rung of the ladder whose construction can be run is run."""

from __future__ import annotations

import pytest

from sandlab.errors import BadInput
from sandlab.lenses.expressivity.circuit_classes import check_rung, circuit_class_table
from sandlab.worlds.automata.catalogue import named_machine


@pytest.mark.parametrize("name", [rung.name for rung in circuit_class_table()])
def test_the_check_of_each_rung_passes(name: str) -> None:
    assert check_rung(name)


def test_every_rung_names_problems_models_and_sources() -> None:
    names = [rung.name for rung in circuit_class_table()]
    assert names == ["AC⁰", "ACC⁰", "TC⁰", "NC¹", "L and NL", "P"]
    assert all(rung.problems and rung.models and rung.sources for rung in circuit_class_table())


def powers_settle(name: str) -> bool:
    """Whether every map f that a word induces has fⁿ = fⁿ⁺¹: then the language is star-free and lies in AC⁰."""
    letters = {tuple(row) for row in named_machine(name, length=4).maps.tolist()}
    maps, new = set(letters), set(letters)
    while new := {tuple(g[state] for state in f) for f in new for g in letters} - maps:
        maps |= new
    for f in maps:
        image = tuple(range(len(f)))
        for _ in f:
            image = tuple(f[state] for state in image)
        if tuple(f[state] for state in image) != image:
            return False
    return True


def test_gridworlds_and_memories_hold_no_groups_and_counters_do() -> None:
    assert powers_settle("Grid4") and powers_settle("flip-flop")
    assert not powers_settle("C2") and not powers_settle("S3")


def test_an_unknown_rung_is_refused() -> None:
    with pytest.raises(BadInput, match="NC¹"):
        check_rung("NC2")
