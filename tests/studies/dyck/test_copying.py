"""The study of copied brackets."""

import numpy as np
import pytest
from claim_cases import check
from dyck_cases import SEEDS, maps, measures_everything, runs, small
from stand_in import LAB

from sandlab.studies.dyck.copying import Results, study


def copiers(layers: int, accuracy: float, uniform: float, structure: float, together: int):
    return runs(
        accuracy=accuracy,
        uniform=uniform,
        zero=uniform - 0.1,
        random=uniform,
        structure=structure,
        dispensable_alone=np.full(SEEDS, 4) + np.arange(SEEDS) % 2,
        dispensable_together=np.full(SEEDS, together),
        maps=maps(*[0.5] * layers, tokens=5)[:, :, None],
        tokens=np.tile([4, 0, 2, 3, 1], (SEEDS, 1)),
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(copiers(1, 0.99, 0.98, 0.3, 1), copiers(4, 0.99, 0.98, 0.3, 1))
    check(study, good, Results(copiers(1, 0.7, 0.3, 0.0, 6), copiers(4, 0.7, 0.3, 0.0, 6)))


@pytest.mark.slow
def test_a_small_run_measures_every_claim_and_draws_every_layer() -> None:
    outcome = study.run(small(study.config("quick")), LAB, "quick")
    measures_everything(study, outcome, "quick")
    assert outcome.results.deep.final["maps"].shape == (3, 4, 2, 28, 28)
    assert len(outcome.figures["maps"].axes) == 5
