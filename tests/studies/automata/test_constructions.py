"""Constructions: claims on made-up checks, and the jobs that check."""

from __future__ import annotations

from dataclasses import replace

from automata_cases import stored
from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.circuits.automata.compiler import METHODS
from sandlab.circuits.sizes import Complexity
from sandlab.studies.automata._constructions.jobs import (
    NamedCheck,
    NamedJob,
    RandomCheck,
    RandomJob,
    Shares,
    StartsCheck,
    WordSets,
    check_named,
    check_random,
    check_starts,
    starts_jobs,
)
from sandlab.studies.automata.constructions import Results, Settings, study

TESTS = WordSets(length=16, words=5, exhaustive=4, most=2000)
SIZE = Complexity(64, 1, 2, 8, 1, 2, (8, 8), 10.0, 1.0, 100, 50)


def results(wrong: int, share: float, printed: float) -> Results:
    """`wrong` errors and misfits everywhere; sizes at this share of their bounds; shares of failures as printed."""
    shares = Shares(share, share, share)
    named = {("Grid4", "gridworld"): NamedCheck(64, wrong, replace(SIZE, depth=2 + wrong))}
    return Results(
        settings=Settings(lengths=(8, 64)),
        random=[RandomCheck(wrong, wrong, shares, printed, printed, printed)] * 2,
        starts={("C3", "scan"): [StartsCheck(3, wrong, 6, shares)]},
        named=named,
        growth={(name, "krohn-rhodes"): [SIZE, replace(SIZE, depth=2 + 20 * wrong)] for name in ("abab", "Grid9")},
        grid_levels={3: 2 + wrong},
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results(0, 0.5, 0.0)), results(1, 2.0, 0.5))


def test_random_machines_are_exact_and_spoiled_ones_are_not() -> None:
    found = [check_random(RandomJob(seed, TESTS)) for seed in range(8)]
    assert sum(each.scan_errors + each.cascade_errors for each in found) == 0
    assert max(each.no_look_back for each in found) > 0 and max(each.no_anchor for each in found) > 0
    assert max(each.printed_rotation for each in found) > 0.1


def test_a_named_machine_is_tried_with_every_construction() -> None:
    found = {method: check_named(NamedJob("D8", method, length=10, words=5)) for method in METHODS}
    depths = {method: each.size.depth for method, each in found.items() if each.size is not None}
    assert depths["solvable-group"] == 7 and depths["semidirect"] == 4
    assert found["gridworld"].size is None and "step left" in found["gridworld"].refusal
    assert sum(each.errors for each in found.values()) == 0


def test_a_named_machine_is_checked_from_every_start_on_all_short_words() -> None:
    tests = replace(TESTS, length=12, exhaustive=5)
    jobs = starts_jobs("Q8", "krohn-rhodes", tests, at_once=3)
    assert [(job.first, job.last) for job in jobs] == [(0, 3), (3, 6), (6, 8)]
    (scan,) = starts_jobs("Q8", "scan", tests)
    found = [check_starts(job) for job in (*jobs, scan)]
    assert [part.starts for part in found] == [3, 3, 2, 8] and sum(part.errors for part in found) == 0
    # 8 states and 4 letters: 4³ words from 8 states are 512, 4⁴ would be 2048.
    assert {part.exhaustive for part in found} == {3}
    assert found[0].shares is not None and 0 < found[0].shares.depth < 1


def test_a_small_run_holds_and_its_misprints_fail() -> None:
    small = Settings(
        machines=6, length=8, words=3, exhaustive=3, named=("C3", "Grid4"), named_words=2, lengths=(8, 256)
    )
    outcome = study.run(replace(small, named_length=8, everywhere=("C3", "abab"), most=500), LAB)
    found = verdicts(study, outcome.results)
    misprints = {"look-back-printed", "anchor-printed", "rotation-printed"}
    assert {name for name, verdict in found.items() if verdict == "fails"} == misprints
    assert "not measured" not in found.values()
    named = {"machines", "scan", "levels", "cascade", "tower", "cayley", "cube", "depth"}
    assert set(outcome.figures) == named and {"every start", "constructions", "refusals"} <= set(outcome.tables)
