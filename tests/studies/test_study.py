"""What a study is: presets, claims from docstrings, results that are judged without computing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from stand_in import LAB

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab._store.codec import decode, encode
from sandlab.studies.claims import Exact, Mean, NotMeasured
from sandlab.studies.study import Lab, Rows, Study


@dataclass(frozen=True)
class Settings:
    seeds: int = 3
    size: int = 10


@dataclass(frozen=True)
class Part:
    values: np.ndarray


@dataclass(frozen=True)
class Results:
    parts: dict[str, Part]
    pairs: list[tuple[int, Part]]
    nothing: Part | None = None


def add(job: Settings) -> Part:
    return Part(np.arange(job.seeds) + float(job.size))


def make() -> Study[Settings]:
    study = Study("t/x", title="title", source="nobody 2000", at="§1", quick=Settings(), full=Settings(seeds=9))

    @study.collect
    def collect(settings: Settings, lab: Lab) -> Results:
        (part,) = lab.map(add, [settings])
        return Results({"a": part}, [(1, part)])

    @study.claim(Mean(above=5.0), at="Figure 2", paper="large", note="grows")
    def is_big(results: Results) -> np.ndarray:
        """It is big.

        Size of
        the thing.
        """
        return results.parts["a"].values

    @study.claim(Exact(above=0.0), id="2-round", presets=("quick",), source="somebody 1999")
    def is_round(results: Results) -> float:
        """It is round.

        Roundness.
        """
        if results.parts["a"].values[0] < 10:
            raise NotMeasured("needs size ≥ 10")
        return 1.0

    @study.table
    def sizes_of_things(results: Results) -> Rows:
        return [{"size": float(value)} for value in results.parts["a"].values]

    return study


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study[Settings]:
    monkeypatch.setitem(sl.registry._entries, "studies", {})
    return make()


def test_a_claim_is_its_function_s_name_docstring_and_decorator(study: Study[Settings]) -> None:
    big, round_ = study.claims
    assert (big.id, big.statement, big.quantity) == ("t/x.is-big", "It is big.", "Size of the thing.")
    assert (big.source, big.paper, big.note) == ("nobody 2000, Figure 2", "large", "grows")
    assert (round_.id, round_.source, round_.presets) == ("t/x.2-round", "somebody 1999", ("quick",))
    assert study.source == "nobody 2000, §1" and study.text.startswith("What a study is")


def test_a_study_measures_each_claim_of_its_preset(study: Study[Settings]) -> None:
    outcome = study.run(study.config("quick", size=20), LAB)
    assert [finding.values for finding in outcome.findings] == [(20.0, 21.0, 22.0), (1.0,)]
    assert outcome.tables["sizes of things"][1] == {"size": 21.0}
    assert [finding.claim for finding in study.run(study.config("full"), LAB, "full").findings] == ["t/x.is-big"]


def test_what_the_settings_leave_out_is_listed_with_the_reason(study: Study[Settings]) -> None:
    outcome = study.run(study.config("quick", size=9), LAB)
    assert [finding.claim for finding in outcome.findings] == ["t/x.is-big"]
    assert outcome.tables["not measured"] == [{"claim": "t/x.2-round", "why": "needs size ≥ 10"}]


def test_results_come_back_from_their_bytes_with_their_types(study: Study[Settings]) -> None:
    results = study.run(study.config(), LAB).results
    again = decode(encode(results), Results)
    assert isinstance(again, Results) and again.nothing is None
    assert isinstance(again.parts["a"], Part) and isinstance(again.pairs[0], tuple)
    assert np.array_equal(again.pairs[0][1].values, results.pairs[0][1].values)
    assert study.judge(again).findings == study.judge(results).findings


def test_bad_studies_and_settings_are_refused(study: Study[Settings]) -> None:
    with pytest.raises(BadInput, match="did you mean 'size'"):
        study.config("quick", sise=3)
    with pytest.raises(BadInput, match="no preset"):
        study.config("medium")
    with pytest.raises(BadInput, match="needs a docstring"):
        study.claim(Mean(above=0.0))(lambda results: 0.0)
    with pytest.raises(BadInput, match="two claims called 'is-big'"):
        study.claim(Mean(above=0.0), id="is-big")(study.claims[1].measure)
    with pytest.raises(BadInput, match="same dataclass"):
        Study("t/y", title="", source="", quick=Settings(), full=3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"no function decorated with @study\.collect"):
        Study("t/z", title="", source="", quick=Settings(), full=Settings()).run(Settings(), LAB)


def test_the_null_judges_what_random_draws_decide(study: Study[Settings]) -> None:
    assert [claim.id for claim in study.due("null")] == ["t/x.is-big"]
    assert [claim.id for claim in study.due("full")] == ["t/x.is-big"]
    assert study.reductions("quick") == ["seeds 3 of 9"]
