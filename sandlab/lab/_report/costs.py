"""What a run costs on a GPU: about so many seconds, from the trainings it asks for and from what recorded runs took.

Which trainings these are, the study says itself: `collect` is called with a laboratory that notes what it is asked for
and answers nothing, until the study needs an answer. A training takes time to be prepared, for every update (which
moves all seeds at once) and for what flows through its layers, which grows with their width; for what a study does
besides training (decoding, probes, exact sums) the time of its quick run stands:

    seconds ≈ a · trainings + b · updates + c · Σ tokens · √parameters + d · seconds of the quick run

Multiplications grow with the parameters themselves, but large models do them faster: on one H200 a token of a model of
19 million weights costs some twenty times as much as one of a hundred thousand, not two hundred times
(docs/benchmarks.md). The rates a to d are fitted to recorded runs that computed everything themselves, and scaled so
that half of these took longer. Some of them shared their GPU with others: an estimate may be wrong by several times. On
a CPU nothing is estimated: such a formula missed half of the recorded runs there by more than four times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab.studies.study import AnyStudy, Lab

if TYPE_CHECKING:
    from sandlab.checking import Function
    from sandlab.learning.experiment import Training
    from sandlab.models.base import Config

__all__ = ["Rates", "TrainingWork", "asked", "fit_rates", "trainings"]

_FEWEST = 5  # runs from which rates are read


@dataclass(frozen=True)
class TrainingWork:
    """One training: its seeds, the updates of each, tokens of an update, parameters of a model.

    what   a text that equal trainings share: one store trains them once
    """

    seeds: int
    updates: int
    tokens: float
    parameters: int
    what: str = ""

    @property
    def features(self) -> tuple[float, float, float]:
        """Trainings, updates, and what flows through the layers."""
        return 1, self.updates, self.seeds * self.updates * self.tokens * math.sqrt(self.parameters)


@dataclass(frozen=True)
class Rates:
    """Seconds for a training, for an update, for a token through a model of one parameter, for a second of quick.

    spread   the middle half of what recorded runs took lies between these multiples of their estimate
    runs     how many recorded runs the rates were read from
    """

    seconds: tuple[float, ...]
    spread: tuple[float, float]
    runs: int

    def estimate(self, work: Sequence[TrainingWork], quick: float) -> float:
        """About how many seconds a run with these trainings takes, of a study whose quick run takes so many."""
        return float(np.dot(_features(work, quick), self.seconds))


def fit_rates(runs: Iterable[tuple[Sequence[TrainingWork], float, float]]) -> Rates | None:
    """Rates from the trainings of runs, the seconds of quick and those of the run; None where too few runs train."""
    from scipy.optimize import nnls

    known = [(_features(work, quick), seconds) for work, quick, seconds in runs if work and seconds > 0]
    if len(known) < _FEWEST:
        return None
    work, took = np.array([each for each, _ in known]), np.array([seconds for _, seconds in known])
    # Relative errors count: a run of ten seconds says as much as one of ten minutes.
    rates, _ = nnls(work / took[:, None], np.ones(len(took)))
    ratio = took / np.maximum(work @ rates, 1e-9)
    low, middle, high = np.quantile(ratio, (0.25, 0.5, 0.75))
    return Rates(tuple((rates * middle).tolist()), (float(low / middle), float(high / middle)), len(took))


def _features(work: Sequence[TrainingWork], quick: float) -> np.ndarray:
    return np.array([*np.sum([(0, 0, 0), *(training.features for training in work)], axis=0), quick])


class _Asked(Lab):
    """A laboratory that computes nothing and notes what it is asked for."""

    def __init__(self) -> None:
        self.wanted: list[object] = []

    def map(self, job: object, configs: Iterable[object], *, given: object = None, label: str = "") -> Any:
        listed = list(configs)
        self.wanted += listed
        return [None] * len(listed)

    def train(self, experiments: Any, *, label: str = "", weights: bool = False) -> Any:
        several = [experiments] if dataclasses.is_dataclass(experiments) else list(experiments)
        self.wanted += several
        return None if several[:1] == [experiments] else [None] * len(several)


def asked(study: AnyStudy, settings: object) -> list[TrainingWork]:
    """The trainings that a study asks for before it needs an answer; if there is none, those that its settings hold."""
    lab = _Asked()
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if study.collector is not None:
            study.collector(settings, lab)
    return list(trainings(lab.wanted)) or list(trainings(settings))


def trainings(settings: object, seeds: int = 1) -> Iterator[TrainingWork]:
    """Every training inside settings or configs of jobs: experiments, and other dataclasses that hold a `Training`."""
    from sandlab.learning.experiment import Experiment, Training

    if isinstance(settings, list | tuple):
        for each in settings:
            yield from trainings(each, seeds)
    elif isinstance(settings, dict):
        yield from trainings(list(settings.values()), seeds)
    elif dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        named = {each.name: getattr(settings, each.name) for each in dataclasses.fields(settings)}
        seeds = _count(named.get("seeds")) or seeds
        if isinstance(settings, Experiment):
            stage: Experiment | None = settings
            while stage is not None:
                yield _work(stage.training, stage.world, settings.model, seeds, f"{settings!r} {stage is settings}")
                stage = stage.then
            return
        for value in named.values():
            if isinstance(value, Training):
                yield _work(value, named.get("world"), named.get("model"), seeds, repr(settings))
            else:
                yield from trainings(value, seeds)


def _work(training: Training, world: object, model: object, seeds: int, what: str) -> TrainingWork:
    length = _count(getattr(world, "length", None)) or _count(getattr(model, "length", None)) or 1
    tokens = training.batch_size * length + training.evals * training.eval_examples * length / (3 * training.steps or 1)
    return TrainingWork(seeds, training.steps, tokens, _parameters(model), what)


def _count(value: object) -> int:
    """A number of things, or the length of a list of them; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    return len(value) if isinstance(value, tuple) else value if isinstance(value, int) else 0


def _parameters(config: object) -> int:
    from sandlab.models.base import Config

    return _weights_of(config) if isinstance(config, Config) else 0


@functools.lru_cache(maxsize=1024)
def _weights_of(config: Config) -> int:
    """How many weights a model has, without drawing them where it can be built without numbers."""
    import torch
    from torch.overrides import TorchFunctionMode

    from sandlab.models.base import build, seeded

    class Undrawn(TorchFunctionMode):
        """Initial weights are not drawn: on tensors without memory that takes most of the time."""

        def __torch_function__(
            self, func: Function, types: object, args: tuple[object, ...] = (), kwargs: dict[str, object] | None = None
        ) -> object:
            named = getattr(func, "__name__", "")
            return args[0] if args and named in ("normal_", "uniform_") else func(*args, **(kwargs or {}))

    try:
        with torch.device("meta"), Undrawn():
            return sum(weight.numel() for weight in build(config).parameters())
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        with seeded(0):
            return sum(weight.numel() for weight in build(config).parameters())
