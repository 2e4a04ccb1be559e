"""The study of attention between seeds, layer by layer."""

import numpy as np
from claim_cases import check
from dyck_cases import maps, measures_everything, runs, small
from stand_in import LAB

from sandlab.studies.dyck.variation_table import PUBLISHED, Results, smallest_increase, study


def table(accuracy: float, *spreads: float) -> Results:
    layers = {count: maps(*spreads[:count], words=2, tokens=19) for count in (2, 3)}
    return Results({cell: runs(accuracy=accuracy, prefix_maps=layers[cell[2]]) for cell in PUBLISHED})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, table(0.99, 0.1, 0.7, 1.0), table(0.6, 0.6, 0.3, 0.1), table(0.99, 1.0, 0.8, 0.7))


def test_the_order_of_layers_that_hardly_vary_does_not_count() -> None:
    assert not smallest_increase(np.full(3, 0.001), np.full(3, 0.016), np.full(3, 0.099)).any()
    assert np.allclose(smallest_increase(np.full(3, 0.1), np.full(3, 2.0)), np.log(20))


def test_every_cell_of_the_published_table_has_a_claim_and_missing_ones_are_not_measured() -> None:
    cells = {claim.id.partition(".")[2] for claim in study.claims} - {"accurate", "first-layer", "last-layer"}
    assert cells == {f"cell-{k}-{d}-{n}" for k in (2, 3) for d in (4, 8) for n in (2, 3)}
    two = dict(list(table(0.99, 0.1, 0.7, 1.0).runs.items())[:2])
    assert len(study.judge(Results(two), "full").unmeasured) == 6


def test_maps_of_prefixes_have_nineteen_tokens_and_rows_that_sum_to_one() -> None:
    outcome = study.run(small(study.config("quick")), LAB, "quick")
    measures_everything(study, outcome, "quick")
    found = outcome.results.runs[2, 4, 3].final["prefix_maps"]
    assert found.shape == (3, 3, 40, 19, 19) and np.allclose(found.sum(-1), 1, atol=1e-5)
    assert set(outcome.figures) == {"layers", "maps"}
