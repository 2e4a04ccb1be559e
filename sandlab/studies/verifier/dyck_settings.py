"""What the Dyck studies share: one model per seed, trained and decoded in one cached job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab.studies.study import Lab
from sandlab.studies.verifier.dyck_campaign import Campaign, campaign
from sandlab.studies.verifier.dyck_model import PUBLISHED

SMALL_CAMPAIGN = Campaign()
FULL_CAMPAIGN = Campaign(
    model=PUBLISHED,
    harvested=200_000,
    for_verifier=441,
    prefixes=164,
    unseen=10_000,
    rounds=1,
    diverse=100,
    points=400,
    probe_steps=200,
    splits=5,
    shuffles=50,
)


@dataclass(frozen=True)
class Settings:
    """Seeds of the language model, and the campaign each of them goes through."""

    seeds: int = 4
    campaign: Campaign = SMALL_CAMPAIGN


QUICK, FULL = Settings(), Settings(seeds=8, campaign=FULL_CAMPAIGN)


def run_campaigns(config: Settings, lab: Lab) -> list[dict[str, Any]]:
    """One result per seed; all Dyck studies ask for the same jobs, so they are computed once.

    Decoding leaves a GPU idle much of the time: there, too, it pays to run the jobs in processes of their own.
    """
    jobs = [replace(config.campaign, seed=seed, device=lab.device) for seed in range(config.seeds)]
    return lab.map(campaign, jobs, label="language model of Dyck words")


def by_model(results: Sequence[dict[str, Any]], pick: Callable[[dict[str, Any]], Any]) -> np.ndarray:
    """One value for each model, the mean over its repetitions.

    Repetitions of one model share its weights, its verifier and its prefixes: only models are independent of each
    other, so the intervals of the findings are over models.
    """
    return np.array([np.mean(np.asarray(pick(each), dtype=float)) for each in results])


def errors_of(results: Sequence[dict[str, Any]], way: str) -> np.ndarray:
    """Wrong completions of fresh prompts a repetition, for each model."""
    return by_model(results, lambda each: each["unseen"]["ways"][way]["errors"])


def spread(values: np.ndarray, digits: int = 3) -> str:
    """Mean ± standard error over models."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"
