"""Studies of the automata chapter that train nothing: small configurations, and that their claims can fail."""

from __future__ import annotations

import pytest
from stand_in import LAB

from sandlab.registry import get
from sandlab.studies.automata.construction_jobs import (
    NamedJob,
    RandomJob,
    check_named,
    check_random,
    check_starts,
    starts_jobs,
)
from sandlab.studies.automata.gridworld_illustration import WalkJob, check_walks
from sandlab.studies.automata.precision import BitsJob, CountJob, measure_bits, measure_counts
from sandlab.studies.claims import judge

NAMES = ("constructions", "gridworld-illustration", "precision")


@pytest.mark.parametrize("name", NAMES)
def test_every_study_has_a_page_and_both_presets(name):
    made = get("studies", f"automata/{name}")
    assert "What to look for" in made.function.__doc__ and set(made.presets) == {"quick", "full"}
    assert all(claim.id.startswith(f"automata/{name}.") for claim in made.claims)


def test_random_machines_are_exact_and_spoiled_ones_are_not():
    found = check_random(RandomJob(0, 8, length=16, words=5, exhaustive=4))
    assert sum(found["scan_errors"]) == sum(found["cascade_errors"]) == 0
    assert max(found["no_look_back"]) > 0 and max(found["no_anchor"]) > 0 and max(found["printed_rotation"]) > 0.1


def test_a_named_machine_is_tried_with_every_construction():
    found = check_named(NamedJob("D8", length=10, words=5))
    rows = {row["method"]: row for row in found["rows"]}
    assert rows["solvable-group"]["depth"] == 7 and rows["semidirect"]["depth"] == 4
    assert not rows["gridworld"]["applies"] and "step left" in rows["gridworld"]["why not"]
    assert all(row["errors"] == 0 for row in rows.values() if row["applies"])


def test_a_named_machine_is_checked_from_every_start_on_all_short_words():
    settings = {"length": 12, "words": 5, "exhaustive": 5, "most": 2000}
    jobs = starts_jobs("Q8", "krohn-rhodes", settings, at_once=3)
    assert [(job.first, job.last) for job in jobs] == [(0, 3), (3, 6), (6, 8)]
    (scan,) = starts_jobs("Q8", "scan", settings)
    found = [check_starts(job) for job in (*jobs, scan)]
    assert [part["starts"] for part in found] == [3, 3, 2, 8] and sum(part["errors"] for part in found) == 0
    # 8 states and 4 letters: 4³ words from 8 states are 512, 4⁴ would be 2048.
    assert {part["all words up to"] for part in found} == {3} and 0 < found[0]["depth_share"] < 1


def test_walks_are_counted_right():
    found = check_walks(WalkJob(3, 1, longest=4, idle=2))
    assert found["walks"] == (1 + 2 + 4 + 8 + 16) + (1 + 3 + 9)
    assert found["wrong"] == found["wrong_short"] == found["span"] == 0 and found["span_printed"] == found["walks"]


def test_the_truncated_counter_follows_the_binomial_law():
    found = measure_counts(CountJob(0.3, 3, 9, length=20, words=2000))
    assert found["accuracy"] == pytest.approx(found["predicted"], abs=0.02)


def test_bits_are_found():
    assert 2 <= measure_bits(BitsJob("C3", "modular-counter", 8, 5))["bits"] <= 10


def test_an_error_would_be_noticed():
    claims = {claim.id: claim for claim in get("studies", "automata/constructions").claims}
    assert judge(claims["automata/constructions.scan-exact"], 1.0).verdict == "fails"
    assert judge(claims["automata/constructions.series-depths"], 3.0).verdict == "fails"
    assert judge(claims["automata/constructions.look-back-printed"], 0.5).verdict == "fails"


def test_the_walk_study_holds_and_its_misprints_fail():
    made = get("studies", "automata/gridworld-illustration")
    outcome, findings = made.measure(made.config("quick", largest=3, longest=4, idle=3), LAB)
    verdicts = {finding.claim.split(".")[1]: finding.verdict for finding in findings}
    assert {name for name, verdict in verdicts.items() if verdict == "fails"} == {"span-printed", "unmatched-printed"}
    assert set(outcome.figures) == {"walks"}
