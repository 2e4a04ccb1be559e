"""The table of depths: claims on made-up accuracies, and what a part of the table leaves out."""

from __future__ import annotations

from dataclasses import replace

from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Experiment
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata._shared import automaton
from sandlab.studies.automata.depth_table import HARD, PUBLISHED, QUICK, Results, cell, study
from sandlab.worlds.automata.catalogue import DEPTH_TABLE


def results(easy: float, shallow: float, deep: float, worse: float, order: int = 1) -> Results:
    """Easy automata at one accuracy; groups at two, with few and with many layers.

    The error grows with the published number of layers (falls, for `order` −1); the second half of the seeds is worse.
    """
    table = {}
    for name in ("flip-flop", *DEPTH_TABLE):
        first, last = (shallow, deep) if name in (*HARD, "D8") else (easy, easy)
        drop = 0.001 * order * PUBLISHED.get(name, 1) if name in PUBLISHED else 0.0
        levels = {1: first - 5 * drop, 2: first, 4: first, 8: last, 16: last}
        table[name] = {depth: runs(token=[level] * 10 + [level - worse] * 10) for depth, level in levels.items()}
    return Results(table)


def test_every_claim_can_hold_and_can_fail() -> None:
    bad = results(0.6, 0.95, 0.9, 0.0, order=-1)
    check(study, stored(study, results(1.0, 0.12, 1.0, 0.2)), bad, results(1.0, 1.0, 1.0, 0.0))


def test_a_cell_has_the_letters_and_classes_of_its_automaton() -> None:
    made = cell(QUICK.base, "S5", 3)
    assert isinstance(made, Experiment) and isinstance(made.model, TransformerConfig)
    assert (made.model.vocab, made.model.outputs, made.model.layers) == (8, 120, 3)
    assert automaton(made).length == 10


def test_a_part_of_the_table_says_which_claims_it_leaves_out() -> None:
    part = replace(tiny(QUICK), machines=("C2", "D8", "Q8"), depths=(1, 3))
    outcome = study.run(part, LAB, "full")
    measured = {finding.claim.split(".")[1] for finding in outcome.findings}
    assert measured == {"parity-shallow", "quaternion-harder"}
    absent = {row["claim"].split(".")[1]: row["why"] for row in outcome.tables["not measured"]}
    assert measured | set(absent) == {claim.id.split(".")[1] for claim in study.claims}
    assert absent["s5-deep"] == "automaton left out: S5"
    assert {(row["automaton"], row["layers"]) for row in outcome.tables["accuracy"]} == {
        (name, depth) for name in ("C2", "D8", "Q8") for depth in (1, 3)
    }
    assert set(outcome.figures) == {"table"} and len(outcome.tables["smallest depth"]) == 3
