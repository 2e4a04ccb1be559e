"""Populations: every model of the zoo, any user module, recording inside, never slower than one after another."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.errors import BadInput

WORLD = sl.worlds.InContextMarkov(states=2, order=1, length=10)
SETTINGS = {
    "vocab": 2,
    "length": 10,
    "outputs": 2,
    "layers": 1,
    "width": 8,
    "heads": 2,
    "hidden": (12,),
    "state_width": 4,
}


def build_named(name: str, **options: object) -> nn.Module:
    """A model of the zoo with those of the settings that it knows."""
    kind = sl.get("models", name)
    known = {field.name for field in dataclasses.fields(kind.config_class)}
    settings = {key: value for key, value in SETTINGS.items() if key in known}
    if name == "disentangled-transformer":
        settings["heads"] = (2, 1)
    return kind(**{**settings, **options})


def reads_tokens(name: str) -> bool:
    """Whether a model maps tokens to classes; the others (pairs of images, scalars) are tested elsewhere."""
    try:
        logits = build_named(name)(WORLD.sample(3, rng=sl.rng(0)).inputs)
    except (BadInput, RuntimeError, TypeError, AttributeError):
        return False
    return logits.shape[0] == 3 and logits.shape[-1] == 2


ZOO = [name for name in sl.names("models") if reads_tokens(name)]
VARIANTS = {name: (name, {}) for name in ZOO} | {
    "rotary": ("transformer", {"positions": "rotary", "norm_kind": "rms"}),
    "relative-tied": ("transformer", {"positions": "relative", "tied": True, "norm": "post"}),
    "looped-linear": ("transformer", {"loops": 2, "attention": "linear", "positions": "alibi"}),
    "one-hot": ("transformer", {"positions": "one-hot", "embedding": "one-hot", "norm": "none", "width": 12}),
    "sinusoidal": ("transformer", {"positions": "sinusoidal", "window": 3, "readout_bias": True}),
}


def build(variant: str) -> nn.Module:
    name, options = VARIANTS[variant]
    return build_named(name, **options)


def test_the_zoo_is_all_here() -> None:
    expected = {"transformer", "disentangled-transformer", "simplified-transformer", "rnn", "lstm", "state-space"}
    assert expected | {"hybrid", "mlp"} <= set(ZOO)


@pytest.mark.parametrize(
    ("steps", "dtype", "most"),
    [(20, torch.float32, 1e-4), pytest.param(100, torch.float64, 1e-9, marks=pytest.mark.slow)],  # rounding grows
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_members_of_every_model_follow_the_same_seed_trained_alone(
    variant: str, steps: int, dtype: torch.dtype, most: float
) -> None:
    rates, decays, scales = [3e-3, 1e-2], [0.0, 0.3], [1.0, 1.5]
    options = {"steps": steps, "batch_size": 8, "objective": "last-label", "clip": 1.0}
    population = sl.learning.Population(lambda seed: build(variant).to(dtype), seeds=[1, 2], init_scale=scales)
    together = sl.learning.train(population, WORLD, rng=sl.rng(0), lr=rates, weight_decay=decays, **options)
    for index, seed in enumerate([1, 2]):
        with sl.models.seeded(seed):
            model = build(variant).to(dtype)
        sl.learning.scale_weights(model, scales[index])
        alone = sl.learning.train(model, WORLD, rng=sl.rng(0), lr=rates[index], weight_decay=decays[index], **options)
        assert np.abs(together[index].loss - alone.loss).max() < most


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_way_of_computing_members_gives_the_same_losses_and_gradients(variant: str) -> None:
    from sandlab.learning._engine.population_step import PopulationStep
    from sandlab.learning._engine.step import UpdateRule
    from sandlab.learning.objectives import LastLabel
    from sandlab.learning.optim import SGD

    batch = LastLabel().prepare(WORLD.sample(8, rng=sl.rng(0)), sl.rng(0))
    still = torch.zeros(3, dtype=torch.float64)
    results = []
    for strategy in ("native", "vmap", "sequential"):
        population = sl.learning.Population(lambda seed: build(variant), seeds=[1, 2, 3], strategy=strategy)
        if strategy == "native" and not population.carries_members:
            continue
        step = PopulationStep(population, LastLabel(), UpdateRule(SGD(), still, still, torch.ones(1)))
        losses = step.compute(batch)
        results.append((losses, step.gradients[0].clone(), population(batch.inputs).detach()))
    for other in results[1:]:
        for value, expected in zip(other, results[0]):
            torch.testing.assert_close(value, expected, atol=1e-6, rtol=1e-5)


def transformer(seed: int = 0) -> nn.Module:
    return sl.models.Transformer(vocab=2, length=10, layers=1, width=8)


@pytest.mark.parametrize("strategy", ["auto", "vmap"])
def test_record_and_patch_reach_inside_a_population(strategy: str) -> None:
    population = sl.learning.Population(transformer, seeds=[1, 2, 3], strategy=strategy)
    inputs = WORLD.sample(4, rng=sl.rng(0)).inputs
    with sl.record(population, "layers.0.attention.pattern") as cache:
        logits = population(inputs)
    patterns = cache["layers.0.attention.pattern"]
    assert patterns.shape == (3, 4, 1, 10, 10)
    uniform = torch.ones(10, 10).tril() / torch.arange(1, 11).unsqueeze(1)
    with sl.patch(population, {"layers.0.attention.pattern": uniform}):
        changed = population(inputs)
    for index, member in enumerate(population.members()):
        with sl.record(member, "layers.0.attention.pattern") as own:
            torch.testing.assert_close(member(inputs), logits[index], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(own["layers.0.attention.pattern"], patterns[index], atol=1e-6, rtol=1e-5)
        with sl.patch(member, {"layers.0.attention.pattern": uniform}):
            torch.testing.assert_close(member(inputs), changed[index], atol=1e-6, rtol=1e-5)


def test_a_patched_activation_stays_patched_while_a_population_trains() -> None:
    uniform = torch.ones(10, 10).tril() / torch.arange(1, 11).unsqueeze(1)
    population = sl.learning.Population(transformer, seeds=[4, 5])
    before = population.stacked["layers.0.attention.query.weight"].detach().clone()
    with sl.patch(population, {"layers.0.attention.pattern": uniform}):
        histories = sl.learning.train(population, WORLD, steps=5, rng=sl.rng(0))
    assert torch.equal(population.stacked["layers.0.attention.query.weight"], before)
    with sl.models.seeded(5):
        model = transformer()
    with sl.patch(model, {"layers.0.attention.pattern": uniform}):
        alone = sl.learning.train(model, WORLD, steps=5, rng=sl.rng(0))
    np.testing.assert_allclose(histories[1].loss, alone.loss, atol=1e-5)


class Stateful(nn.Module):
    """Batch normalisation updates a buffer in place, which `vmap` refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm, self.readout = nn.Embedding(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.readout(self.norm(self.table(tokens).mT).mT)


def test_a_module_that_vmap_refuses_is_computed_one_member_after_another() -> None:
    population = sl.learning.Population(lambda seed: Stateful(), seeds=[0, 1])
    histories = sl.learning.train(population, WORLD, steps=5, rng=sl.rng(0))
    with sl.models.seeded(1):
        model = Stateful()
    alone = sl.learning.train(model, WORLD, steps=5, rng=sl.rng(0))
    np.testing.assert_allclose(histories[1].loss, alone.loss, atol=1e-5)


def test_members_can_be_taken_out_and_put_in() -> None:
    population = sl.learning.Population(transformer, seeds=[0, 1])
    inputs = WORLD.sample(2, rng=sl.rng(0)).inputs
    with sl.models.seeded(9):
        other = transformer()
    population.set_member(0, other)
    torch.testing.assert_close(population(inputs)[0], other(inputs))
    member = population.member(1)
    with torch.no_grad():
        member.unembed.weight.zero_()
    assert population.stacked["unembed.weight"][1].abs().sum() > 0
    with pytest.raises(BadInput, match="there is no member 2"):
        population.member(2)
    with pytest.raises(BadInput, match="all members of a population share one architecture"):
        sl.learning.Population(lambda seed: sl.models.Transformer(vocab=2, length=10, width=8 + seed), seeds=[0, 1])
    with pytest.raises(BadInput, match="the factory must return a torch module"):
        sl.learning.Population(lambda seed: seed, seeds=[0])


class Tied(nn.Module):
    """One weight under two names, a frozen one, and a buffer that differs by seed."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.readout = nn.Embedding(2, 2), nn.Linear(2, 2, bias=False)
        self.readout.weight = self.table.weight
        self.frozen = nn.Parameter(torch.randn(2), requires_grad=False)
        self.register_buffer("shift", torch.randn(2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.readout(self.table(tokens) * self.frozen + self.shift)


def test_the_state_of_a_population_is_that_of_its_members() -> None:
    population = sl.learning.Population(lambda seed: Tied(), seeds=[0, 1, 2])
    sl.learning.train(population, WORLD, steps=3, rng=sl.rng(0))
    state = population.state()
    for index, member in enumerate(population.members()):
        assert set(state) == set(member.state_dict())
        for name, value in member.state_dict().items():
            assert torch.equal(state[name][index], value), name


def test_a_population_of_eight_is_not_slower_than_eight_runs_one_after_another() -> None:
    def seconds(function) -> float:
        begun = time.process_time()
        function()
        return time.process_time() - begun

    def plain() -> None:
        for seed in range(8):
            with sl.models.seeded(seed):
                model = transformer()
            optimizer, rng = torch.optim.AdamW(model.parameters(), lr=1e-3), sl.rng(0)
            for _ in range(12):
                batch = WORLD.sample(16, rng=rng)
                loss = nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def ours() -> None:
        population = sl.learning.Population(transformer, seeds=range(8))
        sl.learning.train(population, WORLD, steps=12, batch_size=16, rng=sl.rng(0))

    ours()  # the fastest way is measured once per process
    assert min(seconds(ours) for _ in range(3)) <= min(seconds(plain) for _ in range(3))
