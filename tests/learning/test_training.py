"""Training one model and a population: the same curves, the same optimisers as torch's, exact resumption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning._engine.loop import Diverged
from sandlab.learning.objectives import CrossEntropy, LastLabel, MaskedToken, NextToken, PositionLabel, SoftTarget
from sandlab.worlds.base import Batch, World, cross_entropy


@dataclass(frozen=True)
class Sums(World):
    """Each token is the previous one plus a step that is 1 or 2 modulo 3; the target is the next token."""

    length: int = 12

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        steps = torch.randint(1, 3, (n, self.length + 1), generator=rng, device=rng.device)
        tokens = steps.cumsum(1) % 3
        mask = torch.ones(n, self.length, dtype=torch.bool, device=rng.device)
        return Batch(tokens[:, :-1], tokens[:, 1:], mask, {"parity": tokens[:, :-1] % 2, "first": tokens[:, 0]})


def small(seed: int = 0, **options: object) -> nn.Module:
    return sl.models.Transformer(**{"vocab": 3, "length": 12, "layers": 1, "heads": 2, "width": 16, **options})


class Plain(nn.Module):
    """A module of the user: it knows nothing of members, and has a frozen weight and a buffer that differ by seed."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 8)
        self.recurrent = nn.Linear(8, 8)
        self.readout = nn.Linear(8, 3)
        self.frozen = nn.Parameter(torch.randn(8), requires_grad=False)
        self.register_buffer("shift", torch.randn(8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.table(tokens)
        return self.readout(torch.tanh(self.recurrent(hidden) + self.shift) * self.frozen)


def by_hand(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, rng: torch.Generator) -> list[float]:
    """The ordinary loop: what `train` must equal."""
    losses = []
    for _ in range(steps):
        batch = Sums().sample(16, rng=rng)
        loss = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    ("name", "options", "build"),
    [
        ("adamw", {"weight_decay": 0.3}, lambda w: torch.optim.AdamW(w, lr=3e-3, weight_decay=0.3)),
        ("adam", {"weight_decay": 0.1}, lambda w: torch.optim.Adam(w, lr=3e-3, weight_decay=0.1)),
        ("adam", {"betas": (0.5, 0.9)}, lambda w: torch.optim.Adam(w, lr=3e-3, betas=(0.5, 0.9))),
        ("sgd", {"weight_decay": 0.1}, lambda w: torch.optim.SGD(w, lr=3e-3, weight_decay=0.1)),
        ("sgd", {"momentum": 0.9}, lambda w: torch.optim.SGD(w, lr=3e-3, momentum=0.9)),
        ("momentum", {}, lambda w: torch.optim.SGD(w, lr=3e-3, momentum=0.9)),
        ("rmsprop", {"weight_decay": 0.1}, lambda w: torch.optim.RMSprop(w, lr=3e-3, weight_decay=0.1)),
        (torch.optim.NAdam, {}, lambda w: torch.optim.NAdam(w, lr=3e-3)),
        (lambda w: torch.optim.Adagrad(w, lr=0.05), {}, lambda w: torch.optim.Adagrad(w, lr=0.05)),
    ],
)
@pytest.mark.parametrize("steps", [10, pytest.param(25, marks=pytest.mark.slow)])
def test_every_optimiser_equals_torch_for_one_model_and_for_each_member(name, options, build, steps) -> None:
    # In float64 and without biases: Adam turns the rounding of a gradient that should be zero into full steps.
    population = sl.learning.Population(lambda seed: small(bias=False).double(), seeds=[3, 4])
    sl.learning.train(population, Sums(), steps=steps, batch_size=16, rng=sl.rng(1), optimizer=name, lr=3e-3, **options)
    for index, seed in enumerate([3, 4]):
        with sl.models.seeded(seed):
            ours = small(bias=False).double()
        with sl.models.seeded(seed):
            theirs = small(bias=False).double()
        history = sl.learning.train(
            ours, Sums(), steps=steps, batch_size=16, rng=sl.rng(1), optimizer=name, lr=3e-3, **options
        )
        expected = by_hand(theirs, build(theirs.parameters()), steps, sl.rng(1))
        np.testing.assert_allclose(history.loss, expected, atol=1e-9)
        for weight, truth, member in zip(ours.parameters(), theirs.parameters(), population.member(index).parameters()):
            torch.testing.assert_close(weight, truth, atol=1e-7, rtol=1e-6)
            torch.testing.assert_close(member, truth, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("steps", [30, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("strategy", ["native", "vmap", "sequential"])
def test_a_member_follows_the_curve_of_the_same_seed_trained_alone(strategy: str, steps: int) -> None:
    rates, decays, scales = [1e-3, 1e-2, 3e-3], [0.0, 0.5, 0.1], [1.0, 3.0, 0.5]
    options = {"steps": steps, "batch_size": 16, "clip": 0.5, "schedule": "cosine", "warmup": 10}
    population = sl.learning.Population(small, seeds=[5, 6, 7], init_scale=scales, strategy=strategy)
    together = sl.learning.train(population, Sums(), rng=sl.rng(2), lr=rates, weight_decay=decays, **options)
    for index, seed in enumerate([5, 6, 7]):
        with sl.models.seeded(seed):
            model = small()
        sl.learning.scale_weights(model, scales[index])
        alone = sl.learning.train(model, Sums(), rng=sl.rng(2), lr=rates[index], weight_decay=decays[index], **options)
        assert np.abs(together[index].loss - alone.loss).max() < 1e-4


@pytest.mark.parametrize("strategy", ["auto", "vmap", "sequential"])
def test_any_module_forms_a_population_and_buffers_that_differ_stay_apart(strategy: str) -> None:
    population = sl.learning.Population(lambda seed: Plain(), seeds=[0, 1, 2], strategy=strategy)
    assert not population.native
    histories = sl.learning.train(population, Sums(), steps=30, rng=sl.rng(0), lr=1e-2)
    for index, member in enumerate(population.members()):
        with sl.models.seeded(index):
            model = Plain()
        frozen = model.frozen.clone()
        alone = sl.learning.train(model, Sums(), steps=30, rng=sl.rng(0), lr=1e-2)
        np.testing.assert_allclose(histories[index].loss, alone.loss, atol=1e-5)
        assert torch.equal(member.frozen, frozen) and torch.equal(model.frozen, frozen)
        torch.testing.assert_close(
            member(torch.tensor([[0, 1, 2]])), model(torch.tensor([[0, 1, 2]])), atol=1e-4, rtol=0
        )


def test_a_model_keeps_its_own_storage_and_learns_in_place() -> None:
    model = small()
    weight, address = model.unembed.weight, model.unembed.weight.data_ptr()
    before = weight.detach().clone()
    sl.learning.train(model, Sums(), steps=3, rng=sl.rng(0))
    assert model.unembed.weight is weight and weight.data_ptr() == address and not torch.equal(weight, before)


def test_training_reaches_the_best_possible_loss() -> None:
    history = sl.learning.train(
        small(), Sums(), steps=300, rng=sl.rng(0), lr=1e-2, evaluate=Sums().sample(256, rng=sl.rng(1))
    )
    assert history.final["loss"] == pytest.approx(np.log(2), abs=0.02)
    assert history.metrics["loss"][0] > 1.0
    assert list(history.eval_steps) == list(range(0, 301, 15))


def test_a_factory_that_ignores_its_seed_still_gives_different_members() -> None:
    population = sl.learning.Population(lambda seed: small(), seeds=[1, 2, 1])
    first, second, third = population.stacked["embedding.weight"]
    assert torch.equal(first, third) and not torch.equal(first, second)


@pytest.mark.gate(2)
@pytest.mark.parametrize("optimizer", ["adamw", "nadam"])
@pytest.mark.parametrize("members", [None, 3])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_by_bit(tmp_path, optimizer: str, members: int | None) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(step: int, _model: object, _metrics: object) -> None:
        if step == 30:
            raise Interrupted

    def run(file: str, **options: object):
        build = lambda seed=0: small(dropout=0.1)  # noqa: E731
        with sl.models.seeded(0):
            model = (
                build() if members is None else sl.learning.Population(build, seeds=range(members), strategy="native")
            )
        result = sl.learning.train(
            model,
            Sums(),
            steps=50,
            rng=sl.rng(4),
            optimizer=optimizer,
            schedule="linear",
            ema=0.9,
            every=10,
            evaluate=Sums().sample(32, rng=sl.rng(5)),
            stop=sl.learning.EarlyStop(patience=40),
            checkpoint=sl.learning.Checkpoint(tmp_path / file, every=7),
            **options,
        )
        return model, result if members else [result]

    whole_model, whole = run("whole.safetensors")
    with pytest.raises(Interrupted):
        run("cut.safetensors", callbacks=[interrupt])
    resumed_model, resumed = run("cut.safetensors")
    for left, right in zip(whole_model.parameters(), resumed_model.parameters()):
        assert torch.equal(left, right)
    for left, right in zip(whole, resumed):
        assert np.array_equal(left.loss, right.loss) and np.array_equal(left.eval_steps, right.eval_steps)
        for name in left.metrics:
            assert np.array_equal(left.metrics[name], right.metrics[name])
        for name, average in left.averaged.items():
            assert torch.equal(average, right.averaged[name])


def test_stopped_members_freeze_and_the_others_go_on() -> None:
    def stop(step: int, metrics: dict[str, np.ndarray]) -> np.ndarray:
        return np.array([step >= 10, False])

    seen = {}

    def note(step: int, model: sl.learning.Population, metrics: dict[str, np.ndarray]) -> None:
        seen[step] = {name: weight.detach().clone() for name, weight in model.stacked.items()}

    population = sl.learning.Population(small, seeds=[0, 1])
    first, second = sl.learning.train(
        population, Sums(), steps=30, every=5, rng=sl.rng(0), stop=stop, callbacks=[note], weight_decay=0.1
    )
    assert first.stopped_at == 10 and len(first.loss) == 10
    assert second.stopped_at is None and len(second.loss) == 30
    for name in seen[10]:
        assert torch.equal(seen[10][name][0], seen[30][name][0])
    assert not torch.equal(seen[10]["unembed.weight"][1], seen[30]["unembed.weight"][1])


def test_early_stopping_by_level_and_by_patience() -> None:
    rule = sl.learning.EarlyStop(metric="loss", below=0.5, patience=2)
    tracker, stops = rule.tracker(3), []
    for values in ([1.0, 1.0, 1.0], [0.9, 0.4, 1.0], [0.8, 0.4, 1.1]):
        metrics = {"loss": np.array(values)}
        tracker.update(metrics, np.ones(3, dtype=bool))
        stops.append(rule.stops(tracker, metrics).tolist())
    assert stops == [[False, False, False], [False, True, False], [False, True, True]]
    with pytest.raises(BadInput, match="'los', which is not evaluated: did you mean 'loss'"):
        sl.learning.EarlyStop("los", below=1.0).tracker(1).update({"loss": np.ones(1)}, np.ones(1, dtype=bool))


def test_a_loss_that_is_not_a_number_names_step_and_member() -> None:
    population = sl.learning.Population(lambda seed: Plain(), seeds=[0, 1])
    with pytest.raises(Diverged, match=r"of member 1 became (nan|inf) at step \d+"):
        sl.learning.train(population, Sums(), steps=60, rng=sl.rng(0), optimizer="sgd", lr=[0.1, 1e38])
    population = sl.learning.Population(lambda seed: Plain(), seeds=[0, 1])
    kept = sl.learning.train(
        population, Sums(), steps=60, rng=sl.rng(0), optimizer="sgd", lr=[0.1, 1e38], nan="continue"
    )
    assert np.isfinite(kept[0].loss).all() and not np.isfinite(kept[1].loss).all()


def test_separate_data_give_each_member_examples_of_its_own() -> None:
    sampled = Sums().sample(32, rng=sl.rng(0))
    population = sl.learning.Population(small, seeds=[0, 0])
    histories = sl.learning.train(population, Sums(), steps=1, batch_size=16, rng=sl.rng(0), data="separate")
    with sl.models.seeded(0):
        model = small()
    for index, history in enumerate(histories):
        own = sampled[16 * index : 16 * (index + 1)]
        with torch.no_grad():
            expected = float(cross_entropy(model(own.inputs).log_softmax(-1), own))
        assert history.loss[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("ema", "decays"), [(0.7, [0.7] * 5), (lambda step: step / (step + 1), [0, 1 / 2, 2 / 3, 3 / 4, 4 / 5])]
)
def test_the_average_of_the_weights_is_the_exponential_moving_average(
    ema: float | Callable[[int], float], decays: list[float]
) -> None:
    model, kept = small(), []
    keep = lambda step, model, metrics: kept.append(model.unembed.weight.detach().clone())  # noqa: E731
    history = sl.learning.train(model, Sums(), steps=5, every=1, rng=sl.rng(0), ema=ema, callbacks=[keep])
    average = kept[0]
    for decay, weight in zip(decays, kept[1:], strict=True):
        average = decay * average + (1 - decay) * weight
    torch.testing.assert_close(history.averaged["unembed.weight"], average)
    history.apply_average(model)
    torch.testing.assert_close(model.unembed.weight.detach(), average)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "steps must be"),
        ({"lr": [0.1, 0.2]}, "lr must be a number or one for each of the 1 members"),
        ({"optimizer": "adamx"}, "did you mean"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"ema": lambda step: 1.5}, "ema must be"),
        ({"objective": "next"}, "objective must be one of"),
        ({"rng": 3}, "use rng=sl.rng"),
        ({"evaluate": 3}, "evaluate must be"),
        ({"stop": lambda: None, "data": "other"}, "data must be one of"),
        ({"stop": sl.learning.EarlyStop(below=1.0)}, "depend on a metric: give evaluate"),
        ({"world": "markov"}, "world must be a World, got str"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(options: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        sl.learning.train(**{"model": small(), "world": Sums(), "steps": 2, "rng": sl.rng(0), **options})


def test_objectives_give_each_member_the_loss_of_its_own_logits() -> None:
    batch = Sums().sample(8, rng=sl.rng(0))
    logits = torch.randn(3, 8, 12, 3, generator=sl.rng(1))
    probs = torch.rand(8, 12, 3, generator=sl.rng(2)).softmax(-1)
    soft = Batch(batch.inputs, probs, batch.mask)
    last = Batch(batch.inputs, batch.targets[:, -1:], batch.mask[:, -1:])
    for case in (batch, soft, last):
        losses = CrossEntropy()(logits, case)
        assert losses.shape == (3,)
        for index in range(3):
            expected = cross_entropy(logits[index].log_softmax(-1), case)
            torch.testing.assert_close(losses[index], expected)
            torch.testing.assert_close(CrossEntropy()(logits[index], case), expected)


def test_objectives_prepare_what_they_promise() -> None:
    batch = Sums().sample(500, rng=sl.rng(0))
    shifted = NextToken().prepare(batch, rng=sl.rng(1))
    assert torch.equal(shifted.inputs, batch.inputs[:, :-1]) and torch.equal(shifted.targets, batch.inputs[:, 1:])
    hidden = MaskedToken(token=3, rate=0.3).prepare(batch, rng=sl.rng(1))
    assert torch.equal(hidden.targets, batch.inputs) and torch.equal(
        hidden.inputs[~hidden.mask], batch.inputs[~hidden.mask]
    )
    assert float(hidden.mask.float().mean()) == pytest.approx(0.3, abs=0.03)
    assert float((hidden.inputs[hidden.mask] == 3).float().mean()) == pytest.approx(0.8, abs=0.03)
    assert torch.equal(PositionLabel("parity").prepare(batch, rng=sl.rng(1)).targets, batch.inputs % 2)
    labelled = LastLabel("first").prepare(batch, rng=sl.rng(1))
    assert torch.equal(labelled.targets, batch.inputs[:, :1]) and labelled.mask.shape == (500, 1)
    assert torch.equal(LastLabel().prepare(batch, rng=sl.rng(1)).targets, batch.targets[:, -1:])
    with pytest.raises(BadInput, match="it has parity, first"):
        PositionLabel("state").prepare(batch, rng=sl.rng(1))
    log_probs = torch.rand(500, 12, 3).log_softmax(-1)
    assert SoftTarget(lambda _: log_probs).prepare(batch, rng=sl.rng(1)).soft


def test_a_history_can_be_drawn() -> None:
    history = sl.learning.train(
        small(), Sums(), steps=20, rng=sl.rng(0), evaluate={"near": Sums().sample(8, rng=sl.rng(1))}
    )
    assert set(history.metrics) == {"near/loss", "near/accuracy"}
    figure = history.plot(levels={"best": np.log(2)})
    assert len(figure.axes) == 2 and figure.axes[0].get_ylabel() == "loss (nats)"


def test_evaluation_over_many_batches_is_the_mean_over_all_examples() -> None:
    population = sl.learning.Population(small, seeds=[0, 1])
    whole = sl.learning.evaluate(population, Sums(), examples=64, rng=sl.rng(3), batch_size=64)
    rng = sl.rng(3)
    parts = [Sums().sample(size, rng=rng) for size in (24, 24, 16)]
    joined = Batch(*(torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets", "mask")))
    for index, member in enumerate(population.members()):
        found = sl.learning.evaluate(member, Sums(), examples=64, rng=sl.rng(3), batch_size=24)
        with torch.no_grad():
            log_probs = member(joined.inputs).log_softmax(-1)
        assert found["loss"] == pytest.approx(float(cross_entropy(log_probs, joined)), abs=1e-6)
        assert found["accuracy"] == pytest.approx(float((log_probs.argmax(-1) == joined.targets).double().mean()))
        assert whole["loss"][index] != found["loss"] and whole["loss"].shape == (2,)


def test_training_switches_dropout_on_and_leaves_the_mode_as_it_was() -> None:
    model = small(dropout=0.5).eval()
    modes: list[bool] = []
    model.register_forward_pre_hook(lambda module, _inputs: modes.append(module.training))
    sl.learning.train(model, Sums(), steps=2, rng=sl.rng(0), evaluate=Sums().sample(4, rng=sl.rng(1)), every=2)
    assert modes == [False, True, True, False] and not model.training
