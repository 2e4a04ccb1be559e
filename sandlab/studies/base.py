"""What a study is: a published result as a function from a configuration to measurements and figures."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from sandlab import figures
from sandlab.errors import BadInput, nearest
from sandlab.registry import register
from sandlab.studies.claims import Claim, Finding, judge

__all__ = ["Lab", "Outcome", "Study", "study"]

Settings = TypeVar("Settings")


class Lab(Protocol):
    """What a study may ask of the laboratory that runs it."""

    device: str

    def map(self, job: Callable[[Any], Any], configs: Iterable[Any], *, label: str = "") -> list[Any]:
        """Results of `job` for each config, in order; finished ones come from the cache."""
        ...


@dataclass
class Outcome:
    """What a study returns.

    measurements  claim id (without the study's name) → one value per seed, or one value for an exact quantity
    figures       name → matplotlib figure
    tables        name → rows (dictionaries of numbers and words)
    notes         claim id → what was learnt, shown beside the finding
    unmeasured    claim id → why the chosen settings do not measure it; a preset as it stands measures all its claims
    """

    measurements: Mapping[str, Sequence[float] | np.ndarray | float]
    figures: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A registered study: `run` it through `sandlab.run` or `sandlab run`."""

    name: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    presets: Mapping[str, Any]
    function: Callable[[Any, Lab], Outcome]
    tour: bool = False

    @property
    def text(self) -> str:
        """What the study's function says about itself: its documentation page."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def place(self) -> tuple[str, str]:
        """Module and name of the function, so that the registry can tell two studies of one name apart."""
        return self.function.__module__, self.function.__qualname__

    def config(self, preset: str = "quick", **changes: Any) -> Any:
        """The preset's configuration with some fields changed."""
        if preset not in self.presets:
            raise BadInput(f"{self.name} has no preset {preset!r}: it has {', '.join(self.presets)}")
        base = self.presets[preset]
        known = [parameter.name for parameter in dataclasses.fields(base)]
        for name in changes:
            if name not in known:
                hint = nearest(name, known) or f"it has {', '.join(known)}"
                raise BadInput(f"{self.name} has no setting {name!r}: {hint}")
        return dataclasses.replace(base, **changes)

    def measure(self, config: Any, lab: Lab, preset: str = "quick") -> tuple[Outcome, list[Finding]]:
        """Run the study and judge every claim of the preset.

        A claim without a measurement is an error, unless settings other than the preset's leave it out and the study
        says why: it is then listed in the table "not measured".
        """
        with figures.style():
            outcome = self.function(config, lab)
        due = [claim for claim in self.claims if preset in claim.presets]
        measured = {self._full_id(short): value for short, value in outcome.measurements.items()}
        notes = {self._full_id(short): note for short, note in outcome.notes.items()}
        left_out = {self._full_id(short): why for short, why in outcome.unmeasured.items()}
        excused = set() if config == self.presets.get(preset) else set(left_out) - set(measured)
        unknown = set(measured) - {claim.id for claim in self.claims}
        missing = {claim.id for claim in due} - set(measured) - excused
        if unknown or missing:
            raise BadInput(
                f"{self.name}: measured but not claimed {sorted(unknown)}, claimed but not measured {sorted(missing)}"
            )
        judged = [claim for claim in due if claim.id in measured]
        absent = [{"claim": claim.id, "why": left_out[claim.id]} for claim in due if claim.id not in measured]
        outcome.tables |= {"not measured": absent} if absent else {}
        return outcome, [judge(claim, measured[claim.id], notes.get(claim.id, "")) for claim in judged]

    def _full_id(self, short: str) -> str:
        return short if short.startswith(self.name + ".") else f"{self.name}.{short}"


def study(
    name: str,
    *,
    title: str,
    source: str,
    claims: Sequence[Claim],
    quick: Any,
    full: Any,
    tour: bool = False,
) -> Callable[[Callable[[Any, Lab], Outcome]], Study]:
    """Register a study. `quick` and `full` are instances of one frozen dataclass with a field `seeds`.

    The decorated function takes the configuration and the laboratory and returns an `Outcome`. Claim ids may be
    given short ("tied"): the study's name is put before them ("markov/weight-tying.tied").
    """
    if type(quick) is not type(full) or not dataclasses.is_dataclass(quick):
        raise BadInput(f"{name}: quick and full must be instances of the same dataclass")
    named = tuple(
        claim if claim.id.startswith(name + ".") else dataclasses.replace(claim, id=f"{name}.{claim.id}")
        for claim in claims
    )
    if not named or len({claim.id for claim in named}) != len(named):
        raise BadInput(f"{name}: a study needs claims, each with an id of its own")

    def wrap(function: Callable[[Any, Lab], Outcome]) -> Study:
        made = Study(name, title, source, named, {"quick": quick, "full": full}, function, tour)
        return register("studies", name)(made)

    return wrap
