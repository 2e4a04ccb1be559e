"""What the Dyck studies share: one model per seed, trained and decoded in one cached job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab.studies.base import Lab
from sandlab.studies.verifier.dyck_campaign import Campaign, campaign
from sandlab.studies.verifier.dyck_model import PUBLISHED

SMALL_CAMPAIGN = Campaign()
FULL_CAMPAIGN = Campaign(
    model=PUBLISHED, harvested=30_000, for_verifier=441, prefixes=164, unseen=10_000, diverse=100, points=882
)


@dataclass(frozen=True)
class Settings:
    """Seeds of the language model, and the campaign each of them goes through."""

    seeds: int = 2
    campaign: Campaign = SMALL_CAMPAIGN


QUICK, FULL = Settings(), Settings(seeds=2, campaign=FULL_CAMPAIGN)


def run_campaigns(config: Settings, lab: Lab) -> list[dict[str, Any]]:
    """One result per seed; all Dyck studies ask for the same jobs, so they are computed once."""
    jobs = [replace(config.campaign, seed=seed, device=lab.device) for seed in range(config.seeds)]
    return lab.map(campaign, jobs, label="language model of Dyck words")


def pooled(results: Sequence[dict[str, Any]], pick: Callable[[dict[str, Any]], Any]) -> np.ndarray:
    """The values of all seeds and repetitions in one list."""
    return np.concatenate([np.atleast_1d(np.asarray(pick(each), dtype=float)) for each in results])


def spread(values: np.ndarray) -> str:
    """Mean ± standard error, as the tables of the source have it."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.4g} ± {error:.2g}"
