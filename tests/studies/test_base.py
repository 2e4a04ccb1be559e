from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from sandlab.errors import BadInput
from sandlab.studies.base import Outcome, Study
from sandlab.studies.claims import Above, Claim


@dataclass(frozen=True)
class Settings:
    seeds: int = 3
    size: int = 10


def make(function: Any) -> Study:
    claims = (Claim("t/x.big", "It is big.", "nobody, 2000", "size", Above(5.0)),)
    return Study("t/x", "title", "source", claims, {"quick": Settings(), "full": Settings(seeds=9)}, function)


LAB = SimpleNamespace(device="cpu", map=lambda job, configs, label="": [job(config) for config in configs])


def test_a_study_measures_each_claim_over_its_jobs() -> None:
    def function(config: Settings, lab: Any) -> Outcome:
        return Outcome({"big": lab.map(lambda seed: config.size + seed, range(config.seeds))}, notes={"big": "grows"})

    made = make(function)
    _, (finding,) = made.measure(made.config("quick", size=20), LAB)
    assert finding.values == (20.0, 21.0, 22.0)
    assert finding.verdict == "holds" and finding.note == "grows"


@pytest.mark.parametrize("measured", [{}, {"small": 1.0}, {"big": 1.0, "other": 2.0}])
def test_a_study_must_measure_exactly_what_it_claims(measured: dict[str, float]) -> None:
    made = make(lambda config, lab: Outcome(measured))
    with pytest.raises(BadInput, match="measured but not claimed"):
        made.measure(made.config(), LAB)


def test_unknown_settings_and_presets_are_refused_with_the_nearest() -> None:
    made = make(lambda config, lab: Outcome({}))
    with pytest.raises(BadInput, match="did you mean 'size'"):
        made.config("quick", siez=3)
    with pytest.raises(BadInput, match="no preset 'tiny': it has quick, full"):
        made.config("tiny")
