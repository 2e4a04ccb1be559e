"""Decoders at equal cost: the tasks, the value functions trained on them, and what each algorithm pays and returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.rejection import BestOfN, Rejection
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.values import TrainedValue, ValueFunction, collect_rollouts, train_value
from sandlab.learning.experiment import Experiment, Training
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.random import rng
from sandlab.studies.study import Lab
from sandlab.studies.verifier._cost_walks import Forest
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.dyck import _dyck_runs as dyck
from sandlab.worlds.verifier.append_calls import FUNCTIONS, Calls
from sandlab.worlds.verifier.append_cases import AppendCases
from sandlab.worlds.verifier.json_records import JsonRecords

ALGORITHMS = ("walk", "value-guided", "backtracking", "best of n", "rejection")
BUDGETS = (1, 2, 4, 8, 16)  # model evaluations over the length of one completion
RECORDS = JsonRecords()
Seen = dict[tuple[int, ...], list[Hashable]]  # prompt → what is looked at of its right strings


class Words(Protocol):
    """A world that says which strings are right."""

    @property
    def end_token(self) -> int: ...

    def contains(self, tokens: Tensor, lengths: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Task:
    """What is written: prompts, the strings that are right, and what is looked at of a string's distribution.

    limit     tokens of the longest string; most: tokens to be written at most
    point     the activation that the value function reads
    summary   string (without prompt) → what is compared with the target's distribution
    """

    name: str
    experiment: Experiment
    world: Words
    limit: int
    most: int
    point: str
    prompts: Callable[[int, int], list[list[int]]]
    summary: Callable[[Sequence[int]], Hashable]

    def room(self, prompts: list[list[int]]) -> list[int]:
        """Tokens that may be written after each prompt."""
        return [min(self.most, self.limit - len(prompt)) for prompt in prompts]


@dataclass(frozen=True)
class Settings:
    """How much is decoded.

    prompts    fresh prompts for each algorithm and budget
    rollouts   strings from which the value function learns
    repeated   for the distance to the target: so many prompts are completed `samples` times each
    tries      for each sample of the target, whole strings at most: what is not right by then is left out
    walk_steps of a walk at most, over the square of the tokens to be written: with exact values 2 on average
    """

    dyck: Experiment
    append: Experiment
    records: Experiment
    budgets: tuple[int, ...] = BUDGETS
    prompts: int = 100
    rollouts: int = 400
    repeated: int = 6
    samples: int = 100
    tries: int = 64
    walk_steps: int = 20
    tasks: tuple[str, ...] = ("Dyck words", "test cases", "JSON records")


def records_experiment(seeds: int, steps: int, width: int, layers: int) -> Experiment:
    model = TransformerConfig(vocab=RECORDS.vocab, length=RECORDS.length, layers=layers, heads=4, width=width)
    training = Training(
        steps=steps, batch_size=32, lr=3e-3, schedule="linear", warmup=50, clip=1.0, evals=1, eval_examples=64,
        precision="tf32",
    )  # fmt: skip
    return Experiment(RECORDS, model, training, seeds)


def tasks(settings: Settings) -> list[Task]:
    """Words of which 18 to 24 brackets are there, the last of several test cases, records from START alone.

    A walk needs about as many steps as the square of what is to be written: all three are a few dozen tokens at most.
    """
    append = settings.append.world
    cases = append.cases if isinstance(append, code.Documents) else AppendCases()
    every = [
        Task(
            "Dyck words", settings.dyck, dyck.UNFAMILIAR, dyck.LIMIT, dyck.LIMIT, _last_layer(settings.dyck),
            lambda n, seed: dyck.draw_prompts(n, rng(seed, "cost prompts"), 18, 24), lambda string: tuple(string[:3]),
        ),
        Task(
            "test cases", settings.append, cases, cases.length, 4 * cases.longest + 15, _last_layer(settings.append),
            lambda n, seed: _append_prompts(cases, n, seed), len,
        ),
        Task(
            "JSON records", settings.records, RECORDS, RECORDS.length, RECORDS.length, _last_layer(settings.records),
            lambda n, seed: [[RECORDS.start_token]] * n, lambda string: RECORDS.render(string).count('"') // 2,
        ),
    ]  # fmt: skip
    return [task for task in every if task.name in settings.tasks]


def _last_layer(experiment: Experiment) -> str:
    config = experiment.model
    assert isinstance(config, TransformerConfig)
    return f"layers.{config.layers - 1}.resid_post"


def _append_prompts(world: AppendCases, n: int, seed: int) -> list[list[int]]:
    """Requests for test cases with all lines but the last, which are right."""
    source = rng(seed, "cost prompts")
    found = []
    for letters in torch.randint(26, (n, 3), generator=source).tolist():
        name = "".join(chr(97 + letter) for letter in letters)
        given = torch.full((world.cases - 1,), FUNCTIONS.index("append"))
        calls = Calls.draw(given, world.longest, source, world.favour)
        lines = [
            f"assert {name}({numbers[:size]}, {item}) == {[*numbers[:size], item]}\n"
            for numbers, size, item in zip(calls.elements.tolist(), calls.sizes.tolist(), calls.item.tolist())
        ]
        found.append([*world.prompt(name, rng=source), *world.encode("".join(lines))])
    return found


@dataclass(frozen=True)
class Point:
    """One algorithm with one budget on one model.

    accuracy   share of prompts that got a right string
    cost       model evaluations per prompt (prefixes computed, those of verifiers that read the network included)
    asked      questions to the verifier per prompt
    distance   total variation between what is looked at of the right strings and the same of the model given the
               language, over that of two samples of the latter, the second as large as what came out; not a number
               where it is not measured
    """

    algorithm: str
    budget: int
    accuracy: float
    cost: float
    asked: float
    distance: float = float("nan")


@dataclass(frozen=True)
class Curves:
    """All points of one model, and its value function: calibration error, area under ROC, reliability curve."""

    points: list[Point]
    calibration: float
    area: float
    predicted: np.ndarray
    observed: np.ndarray
    success: float


@dataclass(frozen=True)
class CostJob:
    settings: Settings
    task: str
    seed: int
    device: str


def decoders(budget: int, steps: int) -> dict[str, Decoder]:
    """Each algorithm with what makes it spend about `budget` times a completion.

    What is remembered costs nothing: the walk and value-guided sampling also end by their steps and tries.
    """
    return {
        "walk": VGB(children="sampled", remember=64, max_steps=steps),
        "value-guided": ValueGuided(children="sampled", max_tries=4 * budget, max_draws=50, remember=64),
        "backtracking": Backtracking(quota=4 * budget - 4, stride=4, threshold=0.3),
        "best of n": BestOfN(candidates=budget),
        "rejection": Rejection(max_tries=10**6),
    }


@dataclass(frozen=True)
class Bench:
    """A trained model on a task with its value function; the prefixes that walks have read are shared."""

    task: Task
    model: Transformer
    value: TrainedValue
    seed: int

    @cached_property
    def forest(self) -> Forest:
        generator = ModelGenerator(self.model)
        return Forest(generator, self._guide(generator), self.task.world.end_token)

    def _guide(self, generator: ModelGenerator) -> ValueFunction:
        return ValueFunction(generator, self.task.point, self.value.network, self.task.world.contains)

    def run(self, decoder: Decoder, prompts: list[list[int]], stream: str, budget: int | None) -> tuple[Tensor, Run]:
        """Which prompts got a right string, and what was written and paid for."""
        if isinstance(decoder, VGB | ValueGuided) and budget is not None:
            return self.run_alone(decoder, prompts, stream, budget)
        return self.run_together(decoder, prompts, stream, budget)

    def run_alone(
        self, decoder: VGB | ValueGuided, prompts: list[list[int]], stream: str, budget: int
    ) -> tuple[Tensor, Run]:
        """Strings that move by themselves: the same strings and costs as together, sooner."""
        strings = self.forest.run(decoder, prompts, self.task.room(prompts), rng(self.seed, stream), budget)
        right = torch.tensor([string.done and bool(string.at.value) for string in strings])
        # Prompts that are the same are read once.
        shared = len(strings) - len({tuple(prompt) for prompt in prompts})
        paid = (sum(string.evaluations for string in strings) - shared) / len(strings)
        asked = sum(string.asked for string in strings) / len(strings)
        return right, Run([string.at.written() for string in strings], paid, asked)

    def run_together(
        self, decoder: Decoder, prompts: list[list[int]], stream: str, budget: int | None
    ) -> tuple[Tensor, Run]:
        generator = ModelGenerator(self.model)
        done = decoder.generate(
            generator,
            prompts,
            max_new=self.task.room(prompts),
            verifier=self._guide(generator),
            eos=self.task.world.end_token,
            rng=rng(self.seed, stream),
            budget=budget,
        )
        right = done.done & self.task.world.contains(done.tokens, done.lengths)
        strings = [done.generated(row) for row in range(len(done))]
        paid = generator.evaluations / len(prompts)
        return right, Run(strings, paid, done.total("verifier_calls") / len(prompts))


@dataclass(frozen=True)
class Run:
    strings: list[list[int]]
    cost: float
    asked: float


def measure(job: CostJob, model: Transformer) -> Curves:
    """Train the value function of one model and run every algorithm with every budget."""
    (task,) = tasks(replace(job.settings, tasks=(job.task,)))
    model = model.to(job.device)
    value, success = _value(task, model, job)
    bench = Bench(task, model, value, job.seed)
    prompts = task.prompts(job.settings.prompts, job.seed + 1)
    length = _length(bench, prompts)
    repeated = [prompt for prompt in prompts[: job.settings.repeated] for _ in range(job.settings.samples)]
    rejection = Rejection(max_tries=job.settings.tries)
    target, again = (_summaries(bench, rejection, repeated, name, None) for name in ("target", "again"))
    steps = job.settings.walk_steps * max(task.room(prompts)) ** 2
    points = []
    for budget in job.settings.budgets:
        for name, decoder in decoders(budget, steps).items():
            most = None if name in ("backtracking", "best of n") else round(budget * length)
            right, run = bench.run(decoder, prompts, f"{name} {budget}", most)
            distance = float("nan")
            if budget == job.settings.budgets[-1]:
                got = _summaries(bench, decoder, repeated, f"law of {name}", most)
                distance = _relative_distance(target, again, got)
            points.append(Point(name, budget, float(right.double().mean()), run.cost, run.asked, distance))
    quality = value.quality
    return Curves(points, value.calibration_error, quality.area, quality.predicted, quality.observed, success)


def _value(task: Task, model: Transformer, job: CostJob) -> tuple[TrainedValue, float]:
    generator = ModelGenerator(model, points=[task.point])
    prompts = task.prompts(job.settings.rollouts, job.seed + 1000)
    rollouts = collect_rollouts(
        generator,
        prompts,
        task.world.contains,
        max_new=task.room(prompts),
        eos=task.world.end_token,
        rng=rng(job.seed, "rollouts"),
    )
    if not 0 < int(rollouts.labels.sum()) < len(rollouts.labels):
        # A model that is never right, or never wrong, has nothing to learn from: one invented opposite keeps V flat.
        rollouts.labels[0] = 1 - rollouts.labels[0]
        rollouts.labels[-1] = rollouts.labels[0]
    return train_value(generator, rollouts, task.point, rng=rng(job.seed, "value")), rollouts.success


def _length(bench: Bench, prompts: list[list[int]]) -> float:
    """Tokens of one completion."""
    _, run = bench.run(BestOfN(candidates=1), prompts, "length", None)
    return float(np.mean([len(string) for string in run.strings]))


def _summaries(bench: Bench, decoder: Decoder, prompts: list[list[int]], stream: str, budget: int | None) -> Seen:
    """What is looked at of the right strings, prompt by prompt."""
    right, run = bench.run(decoder, prompts, stream, budget)
    seen: Seen = {tuple(prompt): [] for prompt in prompts}
    for prompt, string, good in zip(prompts, run.strings, right.tolist()):
        if good:
            seen[tuple(prompt)].append(bench.task.summary(string))
    return seen


def _relative_distance(target: Seen, again: Seen, got: Seen) -> float:
    """Distance to the target over that of a second sample of the target which is as small, both mean over prompts."""
    met = [prompt for prompt in target if target[prompt] and again[prompt]]
    if not met:
        return float("nan")
    ours = [_distance(target[prompt], got[prompt]) for prompt in met]
    floor = [_distance(target[prompt], again[prompt][: len(got[prompt]) or None]) for prompt in met]
    # Two small samples may agree by chance: their distance is at least that of one string.
    return float(np.mean(ours)) / max(float(np.mean(floor)), 1 / max(len(each) for each in again.values()))


def _distance(first: list[Hashable], second: list[Hashable]) -> float:
    """Total variation of two samples; 1 where one is empty."""
    if not first or not second:
        return 1.0
    one, two = Counter(first), Counter(second)
    return 0.5 * sum(abs(one[key] / len(first) - two[key] / len(second)) for key in one | two)


def collect_curves(settings: Settings, lab: Lab) -> dict[str, list[Curves]]:
    """Task → the curves of every seed's model."""
    found = {}
    for task in tasks(settings):
        runs = lab.train(task.experiment, label=f"models of {task.name}", weights=True)
        models: list[Any] = [runs.model(task.experiment.model, index) for index in range(len(runs))]
        # A job is the same whatever else is measured.
        own = replace(settings, tasks=(task.name,))
        jobs = [CostJob(own, task.name, seed, lab.device) for seed in runs.seeds]
        found[task.name] = lab.map(measure, jobs, given=models, label=task.name)
    return found
