"""What the studies of this chapter share: the source, model configs, losses of estimators, exact claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandlab.models.base import Config, Model, seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformerConfig
from sandlab.random import rng
from sandlab.registry import kebab
from sandlab.studies.claims import Exact
from sandlab.studies.study import Study
from sandlab.worlds.base import World, cross_entropy
from sandlab.worlds.ngrams.in_context import InContextNgrams

SOURCE = "Varre, Yüce and Flammarion 2025, Learning in-context n-grams with transformers"


def simplified(world: InContextNgrams, *, heads: int, query_skip: bool = True) -> SimplifiedTransformerConfig:
    """The simplified transformer for a world."""
    return SimplifiedTransformerConfig(vocab=world.states, length=world.length, heads=heads, query_skip=query_skip)


def config_of(preset: Callable[..., Model], world: InContextNgrams, **options: str) -> Config:
    """The config of one of `sandlab.models.ngrams.presets` for a world, with one first-layer head per lag."""
    with seeded(0):
        return preset(world.states, world.length, world.order, **options).config


def estimator_losses(world: World, examples: int = 16384) -> dict[str, float]:
    """Losses of the add-α counting estimators, by name."""
    test = world.sample(examples, rng=rng(1, "levels"))
    return {name: float(cross_entropy(estimate(test), test)) for name, estimate in world.baselines().items()}


class HasExact(Protocol):
    """Results that keep the numbers of `Lemmas`."""

    @property
    def exact(self) -> dict[str, float]: ...


@dataclass(frozen=True)
class Lemmas:
    """Claims whose numbers are computed exactly, whatever the settings: each is made where it is computed.

    >>> lemma = Lemmas(study)
    >>> @lemma(Exact(below=1e-12), at="Lemma 3")
    ... def score_form() -> float: ...      # called by `lemma.numbers()` in `collect`, kept in `results.exact`
    """

    study: Study[Any]
    computed: dict[str, Callable[[], float]] = field(default_factory=dict)

    def __call__(
        self, relation: Exact, *, at: str, paper: str = ""
    ) -> Callable[[Callable[[], float]], Callable[[], float]]:
        def add(compute: Callable[[], float]) -> Callable[[], float]:
            name = kebab(compute.__name__)

            def measure(results: HasExact) -> float:
                return results.exact[name]

            measure.__doc__, self.computed[name] = compute.__doc__, compute
            self.study.claim(relation, at=at, id=name, paper=paper)(measure)
            return compute

        return add

    def numbers(self) -> dict[str, float]:
        return {name: compute() for name, compute in self.computed.items()}
