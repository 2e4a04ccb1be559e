"""How steps are carried out: a stand-in for the graph shows that recording leaves no trace and chains add up."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning._engine import engines
from sandlab.learning._engine.backends import StackedModels
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.sources import Curriculum, Source
from sandlab.learning._engine.steps import TrainState
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.optim import Adam, Settings
from sandlab.learning.schedules import averaging, factors

WORLD = sl.worlds.InContextMarkov(states=2, order=1, length=6)


class Recording:
    """Repeats what would be recorded; a real graph does the same without Python."""

    def __init__(self, update, steps: int) -> None:
        self.update, self.steps = update, steps

    def replay(self) -> None:
        for _ in range(self.steps):
            self.update()


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the recording engine run here: streams and synchronisation mean nothing on a CPU."""

    class Stream:
        def wait_stream(self, other: object) -> None:
            pass

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *place: None)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda place: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, place: torch.set_rng_state(state))
    monkeypatch.setattr(engines, "syncs_host", lambda compute: False)
    monkeypatch.setattr(engines.CUDAGraphEngine, "_record", lambda self, steps: Recording(self._update, steps))


def make_state(steps: int = 40) -> TrainState:
    model = lambda seed: sl.models.Transformer(vocab=2, length=6, layers=1, width=4)  # noqa: E731
    population = StackedModels(sl.learning.Population(model, seeds=range(3)))
    population.strategy = "native"
    rates = torch.tensor([1e-3, 1e-2, 3e-3], dtype=torch.float64)
    return TrainState(
        population,
        CrossEntropy(),
        Adam(Settings()),
        rates,
        0 * rates,
        factors("cosine", steps),
        clip=1.0,
        ema=averaging(0.9, steps),
    )


def source(world: object = WORLD) -> Source:
    return Source(world, 8, sl.rng(1), CrossEntropy(), torch.device("cpu"))


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("chain", [None, 1, 4])
def test_recorded_steps_equal_ordinary_ones_and_trying_them_out_changes_nothing(chain: int | None) -> None:
    plain, recorded = make_state(), make_state()
    engines.Eager(plain, source()).advance(0, 23)
    engine = engines.CUDAGraphEngine(recorded, source(), chain=chain)
    assert recorded.clock.tolist() == [0, 0, 0]
    for start, count in ((0, 9), (9, 14)):
        engine.advance(start, count)
    assert recorded.clock.tolist() == [23] * 3
    assert torch.equal(plain.losses[:23], recorded.losses[:23])
    for left, right in zip([*plain.backend.rows, *plain.averages], [*recorded.backend.rows, *recorded.averages]):
        assert torch.equal(left, right)


@pytest.mark.usefixtures("no_gpu")
def test_a_curriculum_is_drawn_outside_of_the_recording_whatever_its_lengths() -> None:
    shorter = sl.worlds.InContextMarkov(states=2, order=1, length=4)
    stages = Curriculum(((0, WORLD), (3, shorter), (5, WORLD)))
    plain, recorded = make_state(), make_state()
    engines.Eager(plain, source(stages)).advance(0, 8)
    engines.CUDAGraphEngine(recorded, source(stages)).advance(0, 8)
    assert torch.equal(plain.losses[:8], recorded.losses[:8])


@pytest.mark.usefixtures("no_gpu")
def test_a_step_that_cannot_be_recorded_runs_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    state = make_state()
    kept = state.backend.rows
    monkeypatch.setattr(engines, "syncs_host", lambda compute: True)
    monkeypatch.setattr(type(state.backend), "on_gpu", property(lambda self: True))
    with pytest.warns(UserWarning, match="cannot be recorded"):
        engine = engines.make_engine(state, source())
    assert isinstance(engine, engines.Eager) and state.backend.rows is kept


def test_what_cannot_be_recorded_is_known_beforehand() -> None:
    state = make_state()
    assert engines.recordable(state)
    state.backend.strategy = "sequential"  # type: ignore[attr-defined]
    assert not engines.recordable(state)
    assert isinstance(engines.make_engine(state, source()), engines.Eager)


def test_a_curriculum_gives_each_step_its_world() -> None:
    first, second = WORLD, sl.worlds.InContextMarkov(states=2, order=1, length=3)
    stages = Curriculum(((0, first), (2, second)))
    assert [stages.at(step) for step in range(4)] == [first, first, second, second]
    model = sl.models.Transformer(vocab=2, length=6, layers=1, width=4)
    lengths: list[int] = []
    model.register_forward_pre_hook(lambda _module, inputs: lengths.append(inputs[0].shape[-1]))
    sl.learning.train(model, stages, steps=4, rng=sl.rng(0))
    assert lengths == [6, 6, 3, 3]
    with pytest.raises(BadInput, match="must start at 0"):
        Curriculum(((1, first),))


def test_number_formats_are_set_inside_and_restored_outside() -> None:
    before = torch.get_float32_matmul_precision()
    with computing("tf32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(BadInput, match="bf16 is for GPUs"), computing("bf16", torch.device("cpu")):
        pass
    with pytest.raises(BadInput, match="did you mean 'tf32'"), computing("tf-32", torch.device("cpu")):
        pass
    model = sl.models.Transformer(vocab=2, length=6, layers=1, width=4)
    history = sl.learning.train(model, WORLD, steps=2, rng=sl.rng(0), precision="tf32")
    assert history.deviation == 0.0  # on a CPU the two formats are the same
    assert sl.learning.train(model, WORLD, steps=2, rng=sl.rng(0)).deviation is None


PROGRAM = """
import time
from sandlab.progress import Progress
told = Progress(10, "counting", patience=0.0, between=0.0, show={show})
for step in range(3):
    told(step + 1, "note")
told.close()
"""


@pytest.mark.parametrize(
    ("show", "worker", "lines"), [("None", "", 3), ("None", "1", 0), ("True", "1", 3), ("False", "", 0)]
)
def test_progress_speaks_in_lines_and_workers_are_silent(show: str, worker: str, lines: int) -> None:
    environment = {**os.environ, **({"SANDLAB_WORKER": worker} if worker else {})}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(show=show)], env=environment, capture_output=True, text=True, check=True
    )
    assert len(run.stderr.splitlines()) == lines
    assert not lines or run.stderr.startswith("counting: 1/10 steps")


def test_early_members_do_not_cost_computation_when_members_run_in_turn() -> None:
    calls: list[int] = []

    def stop(step: int, metrics: dict[str, np.ndarray]) -> np.ndarray:
        return np.array([step >= 2, False])

    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(2, 2)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return self.table(tokens)

    population = sl.learning.Population(lambda seed: Counting(), seeds=[0, 1], strategy="sequential")
    sl.learning.train(population, WORLD, steps=6, every=1, rng=sl.rng(0), stop=stop)
    assert len(calls) == 2 * 2 + 4
