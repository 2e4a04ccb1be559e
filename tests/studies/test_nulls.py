"""A study without its effect: nothing is trained, everything else is as it was."""

from __future__ import annotations

from sandlab.studies.ngrams.stages import QUICK
from sandlab.studies.nulls import untrained


def test_untrained_settings_keep_everything_but_the_training() -> None:
    null = untrained(QUICK)
    assert null.trigram.training.lr == 0.0 and null.trigram.training.steps == QUICK.trigram.training.evals
    assert null.trigram.world == QUICK.trigram.world and null.fourgram.seeds == QUICK.fourgram.seeds
