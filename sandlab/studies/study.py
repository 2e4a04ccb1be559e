"""What a study is: a published result as one file that reads from top to bottom.

    study = Study("coin/fair", title="…", source="…", quick=Settings(seeds=4), full=Settings(seeds=64))

    @study.collect
    def collect(settings: Settings, lab: Lab) -> Results: ...      # the only part that computes

    @study.claim(Mean(equals=0.5, within=0.02), at="Figure 1")
    def mean(results: Results) -> list[float]: ...                 # a claim beside its measurement

    @study.figure
    def tosses(results: Results) -> Figure: ...

Claims, figures and tables are functions of the collected results: they are judged and drawn again without computing
anything again. The module's docstring is the study's text.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from sandlab import figures
from sandlab.errors import BadInput, nearest
from sandlab.registry import kebab, register
from sandlab.studies.claims import Claim, Exact, Finding, Noted, NotMeasured, Quantity, Values, judge

if TYPE_CHECKING:
    from sandlab.learning.experiment import Experiment, Runs

__all__ = ["AnyStudy", "Lab", "Outcome", "Row", "Rows", "Study"]

SettingsType = TypeVar("SettingsType")
Config = TypeVar("Config")
Given = TypeVar("Given")
Result = TypeVar("Result")
Measure = TypeVar("Measure", bound="Callable[[Any], Values | Noted]")
Draw = TypeVar("Draw", bound="Callable[[Any], Any]")
AnyStudy: TypeAlias = "Study[Any]"
Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "list[Row]"


class Lab(ABC):
    """What a study may ask of the laboratory that runs it."""

    device: str = "cpu"

    @overload
    def map(self, job: Callable[[Config], Result], configs: Iterable[Config], *, label: str = "") -> list[Result]: ...
    @overload
    def map(
        self,
        job: Callable[[Config, Given], Result],
        configs: Iterable[Config],
        *,
        given: Iterable[Given],
        label: str = "",
    ) -> list[Result]: ...
    @abstractmethod
    def map(
        self,
        job: Callable[..., Result],
        configs: Iterable[Any],
        *,
        given: Iterable[Any] | None = None,
        label: str = "",
    ) -> list[Result]:
        """Results of `job` for each config, in order; finished ones come from the cache.

        given   a second argument of the job for each config, such as the model that the config says how to train. It
                must be determined by the config: results are kept under the config alone
        """

    @overload
    def train(self, experiments: Experiment, *, label: str = "", weights: bool = False) -> Runs: ...
    @overload
    def train(self, experiments: Sequence[Experiment], *, label: str = "", weights: bool = False) -> list[Runs]: ...
    def train(
        self, experiments: Experiment | Sequence[Experiment], *, label: str = "", weights: bool = False
    ) -> Runs | list[Runs]:
        """Train experiments: a job per seed on a CPU, where jobs share the cores; all seeds at once on a GPU."""
        from sandlab.learning.experiment import Experiment, Members, join, member_groups, train_members

        several = [experiments] if isinstance(experiments, Experiment) else list(experiments)
        groups = [
            [Members(experiment, seeds, self.device, weights) for seeds in member_groups(experiment, self.device)]
            for experiment in several
        ]
        results = iter(self.map(train_members, [job for group in groups for job in group], label=label or "training"))
        found = [join([next(results) for _ in group]) for group in groups]
        return found[0] if isinstance(experiments, Experiment) else found


@dataclass
class Outcome:
    """What a study found; `unmeasured` are claims that the settings left out, with the reason."""

    results: Any
    findings: list[Finding]
    figures: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Rows] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)


class Study(Generic[SettingsType]):
    """A published result: `run` it through `sandlab.run` or `sandlab run`.

    name          "chapter/name", the study's file: `studies/chapter/name.py`
    title         what was found, in one line
    source        authors, year, title
    quick, full   settings: the effect in one to three minutes on two cores; the source's own size
    null          settings under which the effect is absent (untrained weights, shuffled targets, …)
    at            where in the source
    tour          not read any more: `sandlab tour` lists its studies in `sandlab/cli/studies.py`
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        source: str,
        quick: SettingsType,
        full: SettingsType,
        null: SettingsType | None = None,
        at: str = "",
        tour: bool = False,
    ) -> None:
        if type(quick) is not type(full) or not dataclasses.is_dataclass(quick):
            raise BadInput(f"{name}: quick and full must be instances of the same dataclass")
        self.name, self.title, self.tour = name, title, tour
        self.reference, self.source = source, f"{source}, {at}" if at else source
        absent = {} if null is None else {"null": null}
        self.presets: Mapping[str, SettingsType] = {"quick": quick, "full": full, **absent}
        self.null = null
        self.claims: tuple[Claim, ...] = ()
        self.figures: dict[str, Callable[[Any], Any]] = {}
        self.tables: dict[str, Callable[[Any], Any]] = {}
        self.collector: Callable[[SettingsType, Lab], Any] | None = None
        self.__module__ = sys._getframe(1).f_globals["__name__"]
        register("studies")(self)

    @property
    def text(self) -> str:
        """What the study's file says about itself: its documentation page."""
        return inspect.cleandoc(sys.modules[self.__module__].__doc__ or "")

    def collect(self, function: Callable[[SettingsType, Lab], Result]) -> Callable[[SettingsType, Lab], Result]:
        """The function that computes the study's results, a frozen dataclass, through the laboratory."""
        self.collector = function
        return function

    def claim(
        self,
        relation: Quantity,
        *,
        at: str = "",
        source: str = "",
        paper: str = "",
        held: bool = True,
        presets: tuple[str, ...] = ("quick", "full"),
        note: str = "",
        id: str = "",
    ) -> Callable[[Measure], Measure]:
        """Claim that what the decorated function measures lies in `relation`.

        The function takes the results and returns one value per seed. Its docstring is the statement, and after an
        empty line the measured quantity in words. The id is the function's name in kebab-case, unless given.

        at, source   where the source says so; another source than the study's
        paper        the source's own value
        held         False for a misprint of the source that is expected to fail
        presets      in which it is measured
        note         what was learnt, shown beside the finding
        """

        def add(function: Measure) -> Measure:
            statement, _, quantity = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
            short = id or kebab(function.__name__)
            if not statement or not quantity:
                raise BadInput(f"{self.name}.{short} needs a docstring: the statement, an empty line, the quantity")
            if any(claim.id == f"{self.name}.{short}" for claim in self.claims):
                raise BadInput(f"{self.name} has two claims called {short!r}")
            cited = source or self.reference
            made = Claim(
                id=f"{self.name}.{short}",
                statement=" ".join(statement.split()),
                quantity=" ".join(quantity.split()),
                relation=relation,
                source=f"{cited}, {at}" if at else cited,
                measure=function,
                paper=paper,
                held=held,
                presets=presets,
                note=note,
            )
            self.claims = (*self.claims, made)
            return function

        return add

    def figure(self, function: Draw) -> Draw:
        """Draw the results: the function returns a figure, or several by name."""
        self.figures[kebab(function.__name__)] = function
        return function

    def table(self, function: Draw) -> Draw:
        """Tabulate the results: the function returns rows (dictionaries), or several tables by name."""
        self.tables[function.__name__.replace("_", " ")] = function
        return function

    def config(self, preset: str = "quick", **changes: Any) -> SettingsType:
        """The preset's settings with some fields changed."""
        if preset not in self.presets:
            raise BadInput(f"{self.name} has no preset {preset!r}: it has {', '.join(self.presets)}")
        base: Any = self.presets[preset]
        known = [parameter.name for parameter in dataclasses.fields(base)]
        for name in changes:
            if name not in known:
                hint = nearest(name, known) or f"it has {', '.join(known)}"
                raise BadInput(f"{self.name} has no setting {name!r}: {hint}")
        changed: SettingsType = dataclasses.replace(base, **changes)
        return changed

    def due(self, preset: str) -> list[Claim]:
        """The claims that a preset measures; on the null, those of quick that random draws decide."""
        if preset == "null":
            return [
                claim for claim in self.claims if "quick" in claim.presets and not isinstance(claim.relation, Exact)
            ]
        return [claim for claim in self.claims if preset in claim.presets]

    def reductions(self, preset: str) -> list[str]:
        """Where a preset is smaller than `full`: "trigram.training.steps 2000 of 16384"."""
        whole = dict(_sizes(self.config("full")))
        return [
            f"{name} {size:g} of {whole[name]:g}"
            for name, size in _sizes(self.config(preset))
            if size < whole.get(name, size)
        ]

    def describe(self, preset: str) -> dict[str, str]:
        """The settings of a preset, one line each: "trigram.training.steps" → "2000"."""
        return dict(_flat(self.config(preset)))

    @property
    def results_type(self) -> Any:
        """The annotated return type of `collect`: how stored results are read back."""
        return typing.get_type_hints(self._collector).get("return", Any)

    def run(self, settings: SettingsType, lab: Lab, preset: str = "quick") -> Outcome:
        """Compute the results, judge every claim of the preset, draw the figures."""
        return self.judge(self._collector(settings, lab), preset)

    def judge(self, results: Any, preset: str = "quick") -> Outcome:
        """Findings, figures and tables of collected results; nothing is computed again.

        A claim that the results say nothing about is listed with the reason in the table "not measured".
        """
        findings, unmeasured = [], {}
        for claim in self.due(preset):
            try:
                findings.append(judge(claim, claim.measure(results)))
            except NotMeasured as why:
                unmeasured[claim.id] = str(why)
        outcome = Outcome(results, findings, unmeasured=unmeasured)
        with figures.style():
            for name, draw in self.figures.items():
                outcome.figures |= _named(name, draw(results))
        for name, tabulate in self.tables.items():
            outcome.tables |= _named(name, tabulate(results))
        if unmeasured:
            outcome.tables["not measured"] = [{"claim": claim, "why": why} for claim, why in unmeasured.items()]
        return outcome

    @property
    def _collector(self) -> Callable[[SettingsType, Lab], Any]:
        if self.collector is None:
            raise BadInput(f"{self.name} has no function decorated with @study.collect")
        return self.collector

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {len(self.claims)} claims)"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Dotted names and texts of nested settings; worlds, models and trainings are one line each."""
    is_settings = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if not is_settings or (name and not any(each.name == "seeds" for each in dataclasses.fields(value))):
        yield name, _brief(value)
        return
    for each in dataclasses.fields(value):
        if not name or _differs(each, value):
            yield from _flat(getattr(value, each.name), f"{name}.{each.name}" if name else each.name)


def _sizes(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Dotted names and values of all whole numbers inside settings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            yield from _sizes(getattr(value, each.name), f"{name}.{each.name}" if name else each.name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value
    elif isinstance(value, tuple):
        yield f"number of {name}", len(value)


def _brief(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value) if _differs(each, value)]
        return f"{type(value).__name__}({', '.join(f'{name}={_brief(item)}' for name, item in given)})"
    if isinstance(value, (tuple, list)):
        return ", ".join(_brief(item) for item in value)
    return value.__name__ if inspect.isfunction(value) else str(value)


def _differs(each: dataclasses.Field[Any], value: Any) -> bool:
    return each.default is dataclasses.MISSING or bool(getattr(value, each.name) != each.default)


def _named(name: str, made: Any) -> dict[str, Any]:
    """What a figure or table function returned, by name."""
    return made if isinstance(made, dict) else {name: made}
