"""Every rung of the ladder whose construction can be run is run."""

from __future__ import annotations

import pytest

from sandlab.errors import BadInput
from sandlab.lenses.expressivity.circuit_classes import check_rung, circuit_class_table


@pytest.mark.parametrize("name", [rung.name for rung in circuit_class_table()])
def test_the_check_of_each_rung_passes(name: str) -> None:
    assert check_rung(name)


def test_every_rung_names_problems_models_and_sources() -> None:
    names = [rung.name for rung in circuit_class_table()]
    assert names == ["AC⁰", "ACC⁰", "TC⁰", "NC¹", "L and NL", "P"]
    assert all(rung.problems and rung.models and rung.sources for rung in circuit_class_table())


def test_an_unknown_rung_is_refused() -> None:
    with pytest.raises(BadInput, match="NC¹"):
        check_rung("NC2")
