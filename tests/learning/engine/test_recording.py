"""Updates from Python and recorded ones: a stand-in for the CUDA graph shows that both do the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning._engine import recording
from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.recording import Recording
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import Step, UpdateRule
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.optim import Adam
from sandlab.learning.penalties import Penalised, Sharpening
from sandlab.learning.schedules import averaging, factors
from sandlab.learning.training import Curriculum
from sandlab.worlds.base import World

WORLD = sl.worlds.InContextMarkov(states=2, order=1, length=6)


class Graph:
    """Repeats what would be recorded; a real graph does the same without Python."""

    def __init__(self, update: Callable[[], None], updates: int) -> None:
        self.update, self.updates = update, updates

    def replay(self) -> None:
        for _ in range(self.updates):
            self.update()


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recordings run here: streams and synchronisation mean nothing on a CPU."""

    class Stream:
        def wait_stream(self, other: object) -> None:
            pass

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *device: None)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: torch.set_rng_state(state))
    monkeypatch.setattr(recording, "syncs_host", lambda compute: False)
    monkeypatch.setattr(Recording, "_record", lambda self, updates: Graph(self._update, updates))


def make_step(steps: int = 40) -> PopulationStep:
    model = lambda seed: sl.models.Transformer(vocab=2, length=6, layers=1, width=4)  # noqa: E731
    population = sl.learning.Population(model, seeds=range(3), strategy="native")
    rates = torch.tensor([1e-3, 1e-2, 3e-3], dtype=torch.float64)
    rule = UpdateRule(Adam(), rates, 0 * rates, factors("cosine", steps), clip=1.0, ema=averaging(0.9, steps))
    return PopulationStep(population, CrossEntropy(), rule)


def source(world: World = WORLD) -> Source:
    return Source(world, 8, sl.rng(1), CrossEntropy(), torch.device("cpu"))


def check_equal(left: Step, right: Step, steps: int = 40) -> None:
    np.testing.assert_array_equal(left.losses[:steps], right.losses[:steps])
    for name, value in left.tensors().items():
        assert torch.equal(value, right.tensors()[name]), name


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("chain", [None, 1, 4])
def test_recorded_updates_equal_ordinary_ones_and_recording_them_changes_nothing(chain: int | None) -> None:
    plain, recorded = make_step(), make_step()
    plain.advance(source(), 0, 23)
    batches = source()
    recorded.recording = Recording(recorded, batches, chain=chain)
    check_equal(recorded, make_step())
    for start, count in ((0, 9), (9, 14)):
        recorded.advance(batches, start, count)
    assert recorded.clock.tolist() == [23] * 3
    check_equal(plain, recorded)


@pytest.mark.usefixtures("no_gpu")
def test_a_curriculum_is_drawn_outside_of_the_recording_whatever_its_lengths() -> None:
    shorter = sl.worlds.InContextMarkov(states=2, order=1, length=4)
    stages = Curriculum(((0, WORLD), (3, shorter), (5, WORLD)))
    plain, recorded = make_step(), make_step()
    plain.advance(source(stages), 0, 8)
    batches = source(stages)
    recorded.recording = Recording(recorded, batches)
    recorded.advance(batches, 0, 8)
    check_equal(plain, recorded)


@pytest.mark.usefixtures("no_gpu")
def test_a_training_run_with_recorded_updates_equals_an_ordinary_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[sl.learning.History]:
        model = lambda seed: sl.models.Transformer(vocab=2, length=6, layers=1, width=4)  # noqa: E731
        population = sl.learning.Population(model, seeds=range(3), strategy="native")
        stop = sl.learning.EarlyStop(patience=2)
        schedule = sl.learning.ReduceLROnPlateau(patience=0)
        held_out = WORLD.sample(16, rng=sl.rng(9))
        options = {"schedule": schedule, "stop": stop, "evaluate": held_out, "every": 10, "ema": 0.9}
        return sl.learning.train(population, WORLD, steps=75, batch_size=4, rng=sl.rng(0), **options)

    plain = run()
    monkeypatch.setattr(PopulationStep, "on_gpu", property(lambda self: True))
    monkeypatch.setattr(PopulationStep, "fuse_attention", lambda self: None)  # which rounds differently
    replayed: list[int] = []
    replay = Recording.replay
    monkeypatch.setattr(Recording, "replay", lambda self, *given: (replayed.append(given[1]), replay(self, *given)))
    for left, right in zip(plain, run()):
        assert np.array_equal(left.loss, right.loss) and left.stopped_at == right.stopped_at
        assert all(np.array_equal(values, right.metrics[name]) for name, values in left.metrics.items())
    assert max(replayed) == 10


@pytest.mark.usefixtures("no_gpu")
def test_a_step_that_cannot_be_recorded_runs_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    step = make_step()
    monkeypatch.setattr(recording, "syncs_host", lambda compute: True)
    monkeypatch.setattr(PopulationStep, "on_gpu", property(lambda self: True))
    with pytest.warns(UserWarning, match="cannot be recorded"):
        step.record(source())
    assert step.recording is None
    check_equal(step, make_step())


def test_what_cannot_be_recorded_is_known_beforehand() -> None:
    step = make_step()
    assert step.recordable
    step.objective = Penalised(CrossEntropy(), (Sharpening(schedule="linear"),))
    assert not step.recordable
    step.objective = Penalised(CrossEntropy(), (Sharpening(),))
    assert step.recordable
    step.strategy = "sequential"
    assert not step.recordable
    step.record(source())
    assert step.recording is None


def test_a_curriculum_gives_each_step_its_world() -> None:
    first, second = WORLD, sl.worlds.InContextMarkov(states=2, order=1, length=3)
    stages = Curriculum(((0, first), (2, second)))
    assert [stages.at(step) for step in range(4)] == [first, first, second, second]
    assert stages.sample(2, rng=sl.rng(0)).inputs.shape == (2, 3)
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


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("kind", "pays"), [(sl.models.LSTM, False), (sl.models.RNN, False), (sl.models.StateSpace, True)]
)
def test_no_time_is_left_to_a_compiler_that_would_write_a_recurrence_out_step_by_step(
    kind: type[torch.nn.Module], pays: bool
) -> None:
    population = sl.learning.Population(lambda _: kind(vocab=2, width=4), seeds=range(2), strategy="native")
    zeros = torch.zeros(2, dtype=torch.float64)
    step = PopulationStep(population, CrossEntropy(), UpdateRule(Adam(), zeros, zeros, factors("constant", 40)))
    recorded = Recording(step, source())
    assert (recorded.seconds > 0) == pays
    assert recorded.chain >= 1
