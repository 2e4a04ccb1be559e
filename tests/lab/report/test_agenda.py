"""What to run next: what a run would tell, what it would cost, and which comes first."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sandlab as sl
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._report import agenda as module
from sandlab.lab._report.agenda import Row, agenda
from sandlab.lab._report.costs import Rates, TrainingWork, asked, fit_rates, trainings
from sandlab.lab._store.plain import plain
from sandlab.lab.run import collect_version
from sandlab.learning.experiment import Experiment, Training
from sandlab.models.base import build
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, judge
from sandlab.studies.study import Lab, Study

WORLD = sl.worlds.MarkovChain.binary(0.1, 0.1, length=8)
MODEL = TransformerConfig(vocab=2, length=8, layers=1, width=8, heads=1)
BASE = Experiment(WORLD, MODEL, Training(steps=100, batch_size=4, evals=1, eval_examples=12), seeds=3)


@dataclass(frozen=True)
class Settings:
    base: Experiment
    rates: tuple[float, ...] = (0.1,)


@dataclass(frozen=True)
class Results:
    values: list[float]


def by_rate(settings: Settings, lab: Lab) -> Results:
    """As many trainings as there are rates."""
    changed = [replace(settings.base, training=replace(settings.base.training, lr=rate)) for rate in settings.rates]
    return Results([float(runs.loss.mean()) for runs in lab.train(changed)])


def answers_first(settings: Settings, lab: Lab) -> Results:
    """A study that needs an answer before it trains."""
    (first,) = lab.map(float, [1.0])
    return Results([first + lab.train(settings.base).loss.mean()])


def studies(collect: Any, *names: str) -> list[Study[Any]]:
    """Studies with two claims, of which one has a value of its source; full has three rates, quick one."""
    found = []
    for name in names:
        study = Study(name, title="t", source="s", quick=Settings(BASE), full=Settings(BASE, (0.1, 0.2, 0.3)))
        study.collect(collect)

        @study.claim(Mean(above=0.5), paper="1")
        def numbered(results: Results) -> list[float]:
            """With a number.

            Mean.
            """
            return results.values

        @study.claim(Mean(above=0.5), presets=("full",))
        def only_full(results: Results) -> list[float]:
            """Without one.

            Mean.
            """
            return results.values

        found.append(study)
    return found


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The studies that the laboratory has."""
    known: list[str] = []
    monkeypatch.setattr(module, "names", lambda kind: known)
    monkeypatch.setattr("sandlab.lab._report.published.names", lambda kind: known)
    module._work.cache_clear()
    return known


def record(folder: Path, study: Study[Any], preset: str, values: list[float], **about: Any) -> None:
    place, config = folder / study.name / preset, study.presets[preset]
    place.mkdir(parents=True)
    facts = {"collect": collect_version(study, config), "config": plain(canonical(config)), "finished": 1.0}
    facts |= {"seconds": 90.0, "device": "cpu", "jobs": {"cached": 0}, **about}
    (place / "run.json").write_text(json.dumps(facts))
    (place / "findings.json").write_text(json.dumps(plain([judge(c, values).as_dict() for c in study.due(preset)])))


def rows(folder: Path) -> dict[str, Row]:
    return {f"{row.study} {row.preset}": row for row in agenda(folder).rows}


def told(row: Row) -> tuple[int, int, int, int]:
    return row.value, row.claims, row.published, row.open


def test_a_run_is_worth_the_claims_that_it_is_the_first_to_measure(tmp_path: Path, shown: list[str]) -> None:
    (study,) = studies(by_rate, "agenda/worth")
    shown.append(study.name)
    found = rows(tmp_path)
    assert told(found["agenda/worth quick"]) == (3, 1, 1, 1)  # one claim, numbered, open
    assert told(found["agenda/worth full"]) == (5, 2, 1, 2)
    record(tmp_path, study, "quick", [1.0, 1.1, 0.9])
    found = rows(tmp_path)
    assert told(found["agenda/worth quick"]) == (0, 0, 0, 0) and found["agenda/worth quick"].order is None
    assert told(found["agenda/worth full"]) == (4, 2, 1, 1)  # quick decides one of them
    record(tmp_path, study, "full", [1.0, 1.1, 0.9], collect="older code")
    assert told(rows(tmp_path)["agenda/worth full"]) == (4, 2, 1, 1)


def test_an_inconclusive_claim_is_open(tmp_path: Path, shown: list[str]) -> None:
    (study,) = studies(by_rate, "agenda/unclear")
    shown.append(study.name)
    record(tmp_path, study, "quick", [1.0, 0.1, 0.4])
    assert told(rows(tmp_path)["agenda/unclear full"]) == (5, 2, 1, 2)


def test_what_was_recorded_is_the_cost_unless_results_came_from_the_store(tmp_path: Path, shown: list[str]) -> None:
    first, second, third = studies(by_rate, "agenda/one", "agenda/two", "agenda/three")
    shown.extend(each.name for each in (first, second, third))
    record(tmp_path, first, "full", [1.0] * 3, collect="older code")
    record(tmp_path, second, "full", [1.0] * 3, collect="older code", jobs={"cached": 2})
    record(tmp_path, third, "full", [1.0] * 3, collect="older code", config={"other": "settings"})
    found = rows(tmp_path)
    assert (found["agenda/one full"].cost, found["agenda/one full"].basis) == (90.0, "recorded")
    assert (found["agenda/two full"].cost, found["agenda/two full"].basis) == (None, "unknown")
    assert (found["agenda/three full"].cost, found["agenda/three full"].basis) == (90.0, "other settings")


def test_the_most_telling_minute_comes_first_and_shared_trainings_cost_once(
    tmp_path: Path, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    same, twin, known, dark = studies(by_rate, "agenda/b", "agenda/c", "agenda/known", "agenda/dark")
    shown.extend(each.name for each in (same, twin, known, dark))
    dark.collector = answers_first
    monkeypatch.setattr(dark, "presets", {"full": dark.presets["full"]})
    record(tmp_path, known, "full", [1.0] * 3, collect="older code", seconds=3600.0, device="cuda")
    record(tmp_path, twin, "quick", [1.0] * 3)
    monkeypatch.setattr(module, "fit_rates", lambda runs: Rates((100.0, 0.0, 0.0, 0.5), (1.0, 1.0), 5))
    monkeypatch.setattr(module, "asked", lambda s, p: [] if s is dark else asked(s, p))
    due = [row for row in agenda(tmp_path).due if row.preset == "full"]
    assert [row.command.split()[2] for row in due] == ["agenda/b", "agenda/c", "agenda/known", "agenda/dark"]
    assert due[0].cost == due[0].extra == 300.0 and due[1].cost == 345.0 and due[1].extra == 45.0  # half of quick
    assert due[2].extra == 3600.0 and due[3].extra is None
    assert [row.device for row in due] == ["cuda", "cuda", "cuda", "cpu"]


def test_rates_that_made_the_seconds_are_found_again() -> None:
    draw = np.random.default_rng(0)
    runs = []
    for _ in range(12):
        sizes = draw.integers((1, 10, 100, 1000), (9, 9999, 9999, 10**6), size=(int(draw.integers(1, 5)), 4)).tolist()
        work = [TrainingWork(*size) for size in sizes]
        flow = sum(w.seeds * w.updates * w.tokens * w.parameters**0.5 for w in work)
        quick = float(draw.uniform(1, 100))
        runs.append((work, quick, 14 * len(work) + 2e-3 * sum(w.updates for w in work) + 1e-9 * flow + 0.3 * quick))
    rates = fit_rates(runs)
    assert rates is not None and rates.runs == 12
    np.testing.assert_allclose(rates.seconds, (14, 2e-3, 1e-9, 0.3), rtol=1e-6)
    np.testing.assert_allclose(rates.spread, (1.0, 1.0), rtol=1e-6)
    new = [TrainingWork(4, 500, 10_000, 1_000_000)]
    assert rates.estimate(new, 10.0) == pytest.approx(14 + 1.0 + 20.0 + 3.0)
    assert rates.estimate([], 10.0) == pytest.approx(3.0)
    assert fit_rates(runs[:4]) is None
    slow = fit_rates([(work, quick, each * (3 if i % 2 else 1)) for i, (work, quick, each) in enumerate(runs)])
    assert slow is not None and slow.spread[1] > 1.2 * slow.spread[0]


def test_a_study_says_itself_what_it_trains() -> None:
    first, second = studies(by_rate, "agenda/many", "agenda/late")
    second.collector = answers_first
    weights = sum(weight.numel() for weight in build(MODEL).parameters())
    found = asked(first, first.presets["full"])
    assert [(each.seeds, each.updates) for each in found] == [(3, 100)] * 3 and len(set(found)) == 3
    assert found[0].parameters == weights and found[0].tokens == pytest.approx(8 * (4 + 12 / 300))
    assert len(asked(second, second.presets["full"])) == 1  # what its settings hold
    two = replace(BASE, then=replace(BASE, training=replace(BASE.training, steps=7)))
    assert [each.updates for each in trainings([two, {"x": two}])] == [100, 7] * 2


def test_the_table_at_the_published_length_is_all_of_its_cells() -> None:
    study = sl.get("studies", "automata/depth-at-100")
    assert len(asked(study, study.presets["quick"])) == 8  # four machines, two depths
