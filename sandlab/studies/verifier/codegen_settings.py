"""What the code-generation studies share: presets, one cached job per seed, the published numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab.studies.study import Lab
from sandlab.studies.verifier.codegen_campaign import CodeCampaign, CodeCampaigns, Way, code_campaigns
from sandlab.studies.verifier.codegen_model import FULL_WORLD, CodeModel
from sandlab.studies.verifier.codegen_published import TABLE
from sandlab.studies.verifier.dyck_settings import by_model, spread
from sandlab.worlds.verifier.append_cases import OOD_NAMES

SMALL_CAMPAIGN = CodeCampaign()
FULL_CAMPAIGN = CodeCampaign(
    model=CodeModel(
        world=FULL_WORLD, layers=4, heads=4, width=256, mlp_width=1024, steps=3000, batch_size=32, lr=1e-3, ema=0.995
    ),
    names=10,
    foreign=OOD_NAMES,
    repetitions=5,
    harvested=2100,
    probe_steps=400,
    hidden=256,
    nuclei=(0.7, 0.8, 0.9, 0.95, 1.0),
    temperatures=(0.2, 0.4, 0.6, 0.8, 1.0, 1.2),
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Seeds of the language model, and the campaign each of them goes through."""

    seeds: int = 3
    campaign: CodeCampaign = SMALL_CAMPAIGN


QUICK, FULL = Settings(), Settings(seeds=2, campaign=FULL_CAMPAIGN)


class Runs:
    """The campaigns of all seeds, asked by way of writing."""

    def __init__(self, config: Settings, lab: Lab) -> None:
        self.campaign = config.campaign
        each, seeds = replace(config.campaign, device=lab.device), range(config.seeds)
        # On a GPU one job trains all models together; on a CPU each model is a job, and jobs run side by side.
        groups = [(seed,) for seed in seeds] if lab.device == "cpu" else [tuple(seeds)]
        jobs = [CodeCampaigns(each, group) for group in groups]
        found = lab.map(code_campaigns, jobs, label="language models of small programs")
        self.results: list[dict[str, Any]] = [result for results in found for result in results]

    def values(self, way: Way, key: str = "accuracy") -> np.ndarray:
        """One value for each model, the mean over its repetitions."""
        return by_model(self.results, lambda each: each["ways"][way.label][key])

    def gap(self, way: Way, other: Way) -> np.ndarray:
        """Accuracy of one way minus another's, model by model (both on the same random numbers)."""
        return self.values(way) - self.values(other)

    def best(self, ways: Sequence[Way]) -> Way:
        """The most accurate on average."""
        return max(ways, key=lambda way: float(self.values(way).mean()))

    def row(self, way: Way, name: str = "") -> dict[str, Any]:
        """Accuracy and queries of a way beside the published ones."""
        published = TABLE.get(way.published, ("", ""))
        return {
            **({"way": name} if name else {}),
            **describe(way),
            "accuracy": spread(self.values(way)),
            "published accuracy": published[0],
            "queries": spread(self.values(way, "queries"), 0),
            "published queries": published[1],
        }

    def length(self, way: Way) -> float:
        """Queries of one completion."""
        return float(self.values(way, "queries").mean()) / (self.campaign.names * self.campaign.completions)

    @property
    def asked(self) -> int:
        """Test cases that are asked for in one repetition, familiar names."""
        return self.campaign.names * self.campaign.completions * self.campaign.model.world.cases


def describe(way: Way) -> dict[str, Any]:
    """The columns that say how it was written, as the source's tables have them."""
    guided = way.guided
    return {
        "Q": way.quota,
        "B": way.stride if guided else None,
        "τ": way.threshold if guided else None,
        "top-p": way.top_p,
        "T": way.temperature,
        "n": way.candidates or None,
    }
