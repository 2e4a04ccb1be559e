import math

import pytest
import torch

import sandlab as sl
from sandlab.learning.objectives import CrossEntropy, Forward
from sandlab.learning.penalties import InvariantLogits, Penalised, SequenceMean, Sharpening, row_sharpness
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlopTransduction

WORLD = FlipFlopTransduction(length=12, idle=0.7)


def model(seed: int = 0, **options: object) -> sl.models.Transformer:
    with sl.models.seeded(seed):
        return sl.models.Transformer(vocab=3, outputs=2, length=24, layers=2, heads=2, width=16, **options)


@pytest.mark.parametrize(
    ("kind", "one_hot", "uniform"),
    [("entropy", 0.0, math.log(8)), ("negative-l2", -1.0, -1 / math.sqrt(8)), ("negative-max", -1.0, -1 / 8)],
)
def test_one_hot_and_uniform_rows_are_the_ends_of_each_range(kind: str, one_hot: float, uniform: float) -> None:
    ends = torch.stack([torch.eye(8)[3], torch.full((8,), 1 / 8)])
    found = row_sharpness(ends, kind)
    assert found.tolist() == pytest.approx([one_hot, uniform], abs=1e-6)
    rows = torch.rand(200, 8, generator=sl.rng(0)).softmax(-1)
    between = row_sharpness(rows, kind)
    assert bool((between >= one_hot - 1e-6).all() and (between <= uniform + 1e-6).all())


def test_the_schedules_have_their_stated_shapes() -> None:
    assert Sharpening(0.5).strength_at(3) == 0.5
    linear = Sharpening(1.0, schedule="linear", start=100, steps=300)
    assert [linear.strength_at(s) for s in (0, 100, 200, 300, 900)] == pytest.approx([0, 0, 0.5, 1, 1])
    waves = Sharpening(2.0, schedule="oscillating", start=10, period=100)
    assert [waves.strength_at(s) for s in (5, 10, 60, 110)] == pytest.approx([0, 0, 2, 0], abs=1e-12)


def test_a_penalised_loss_is_the_plain_one_plus_the_weighted_mean_entropy() -> None:
    net, batch = model(), WORLD.sample(5, rng=sl.rng(1))
    with sl.record(net, "layers.*.attention.pattern") as cache:
        logits = net(batch.inputs)
    entropy = torch.stack([row_sharpness(cache[name], "entropy").mean() for name in cache]).mean()
    objective = Penalised(CrossEntropy(), (Sharpening(0.3),))
    whole = objective.whole(Forward(net, net, 0), batch)
    assert float(whole.detach()) == pytest.approx(
        float((CrossEntropy()(logits, batch) + 0.3 * entropy).detach()), abs=1e-6
    )
    assert float(objective(logits, batch)) == pytest.approx(float(CrossEntropy()(logits, batch)))


@pytest.mark.gate(2)
@pytest.mark.parametrize("strategy", ["native", "vmap", "sequential"])
def test_members_of_a_penalised_population_equal_models_trained_alone(strategy: str) -> None:
    objective = Penalised(CrossEntropy(), (Sharpening(0.1),))
    options = {"steps": 20, "batch_size": 16, "objective": objective, "lr": 1e-3}
    population = sl.learning.Population(lambda seed: model(seed), seeds=[0, 1, 2], strategy=strategy)
    together = sl.learning.train(population, WORLD, rng=sl.rng(2), **options)
    for seed, history in enumerate(together):
        alone = sl.learning.train(model(seed), WORLD, rng=sl.rng(2), **options)
        assert abs(alone.loss - history.loss).max() < 1e-4


def test_sharpening_lowers_the_entropy_of_attention() -> None:
    held_out = WORLD.sample(64, rng=sl.rng(3))

    def entropy(strength: float) -> float:
        net = model()
        objective = Penalised(CrossEntropy(), (Sharpening(strength),))
        sl.learning.train(net, WORLD, steps=150, batch_size=32, rng=sl.rng(4), objective=objective, lr=3e-3)
        maps = sl.lenses.attention_maps(net, held_out.inputs, average=False)
        return float(torch.stack([row_sharpness(rows, "entropy").mean() for rows in maps.values()]).mean())

    assert entropy(0.3) < 0.5 * entropy(0.0)


def test_invariant_logits_compare_the_same_positions_with_and_without_a_prefix() -> None:
    net, batch = model(positions="none", init_std=None), WORLD.sample(6, rng=sl.rng(5))

    def prefix(given: Batch, rng: torch.Generator) -> tuple[torch.Tensor, int]:
        front = torch.randint(1, 3, (len(given), 4), generator=rng)
        return torch.cat([front, given.inputs], 1), given.inputs.shape[1]

    penalty = InvariantLogits(prefix, strength=2.0)
    objective = Penalised(CrossEntropy(), (penalty,))
    prepared = objective.prepare(batch, rng=sl.rng(6))
    found = objective.whole(Forward(net, net, 0), prepared) - CrossEntropy()(net(batch.inputs), batch)
    longer = net(prepared.truth["prefixed_inputs"])[:, 4:]
    assert float(found) == pytest.approx(2.0 * float((longer - net(batch.inputs)).square().mean()), rel=1e-4)


def test_the_sequence_mean_weighs_sequences_alike() -> None:
    logits = torch.zeros(2, 3, 2)
    logits[0, :, 0] = 5.0
    batch = Batch(
        torch.zeros(2, 3).long(),
        torch.tensor([[1, 1, 1], [0, 0, 0]]),
        torch.tensor([[True, True, True], [True, False, False]]),
    )
    wrong = math.log(1 + math.exp(5.0))
    assert float(SequenceMean()(logits, batch)) == pytest.approx((wrong + math.log(2)) / 2, rel=1e-5)
    stacked = torch.stack([logits, logits])
    assert SequenceMean()(stacked, batch).tolist() == pytest.approx([(wrong + math.log(2)) / 2] * 2, rel=1e-5)
