import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from stand_in import LAB

from sandlab.errors import BadInput
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Outcome, Study


@dataclass(frozen=True)
class Settings:
    seeds: int = 3
    size: int = 10


def make(function: Any) -> Study:
    claims = (Claim("t/x.big", "It is big.", "nobody, 2000", "size", Above(5.0)),)
    return Study("t/x", "title", "source", claims, {"quick": Settings(), "full": Settings(seeds=9)}, function)


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


def partly(config: Settings, lab: Any) -> Outcome:
    """Measures its second claim only when the size is at least 10."""
    if config.size < 10:
        return Outcome({"big": float(config.size)}, unmeasured={"round": "needs size ≥ 10"})
    return Outcome({"big": float(config.size)} if config.size == 11 else {"big": 1.0, "round": 1.0})


def test_other_settings_may_leave_a_claim_out_when_the_study_says_why() -> None:
    made = make(partly)
    extra = Claim("t/x.round", "It is round.", "nobody, 2000", "roundness", Above(0.0), exact=True)
    both = dataclasses.replace(made, claims=(*made.claims, extra))
    outcome, findings = both.measure(both.config("quick", size=9), LAB)
    assert [finding.claim for finding in findings] == ["t/x.big"]
    assert outcome.tables["not measured"] == [{"claim": "t/x.round", "why": "needs size ≥ 10"}]
    outcome, findings = both.measure(both.config("quick", size=12), LAB)
    assert len(findings) == 2 and "not measured" not in outcome.tables
    with pytest.raises(BadInput, match=r"claimed but not measured \['t/x.round'\]"):
        both.measure(both.config("quick", size=11), LAB)


def test_a_preset_as_it_stands_measures_all_its_claims() -> None:
    made = make(lambda config, lab: Outcome({}, unmeasured={"big": "too tired"}))
    with pytest.raises(BadInput, match="claimed but not measured"):
        made.measure(made.config(), LAB)
    outcome, findings = made.measure(made.config("quick", size=3), LAB)
    assert findings == [] and outcome.tables["not measured"] == [{"claim": "t/x.big", "why": "too tired"}]


def test_unknown_settings_and_presets_are_refused_with_the_nearest() -> None:
    made = make(lambda config, lab: Outcome({}))
    with pytest.raises(BadInput, match="did you mean 'size'"):
        made.config("quick", siez=3)
    with pytest.raises(BadInput, match="no preset 'tiny': it has quick, full"):
        made.config("tiny")
