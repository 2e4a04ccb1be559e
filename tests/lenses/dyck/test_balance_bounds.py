import math

import pytest
import torch

import sandlab as sl
from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores
from sandlab.lenses.dyck.balance import balance_gap, balance_report
from sandlab.lenses.dyck.balance_bounds import cancelling_residue, network_lipschitz, pumped_twins, violation_bound
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.worlds.base import Batch
from sandlab.worlds.dyck.language import Dyck


def disturbed(noise: float = 0.3, types: int = 2, depth: int = 4) -> BalanceTransformer:
    model = balanced_dyck(types, depth, scores=random_balanced_scores(types, depth, rng=sl.rng(3)))
    size = 2 * types * depth + 1
    with torch.no_grad():
        model.layers[0].score[:size, :size] += noise * torch.randn(size, size, generator=sl.rng(4)).double()
    return model


@pytest.mark.parametrize(("query", "pair"), [((2, 0), (1, 1)), ((3, 1), (2, 0)), ((4, 0), (4, 1))])
def test_the_twins_are_what_the_model_says_on_the_words_themselves(query: tuple, pair: tuple) -> None:
    model = disturbed()
    twins = pumped_twins(model, 100, query, pair)
    words = torch.tensor(twins.words)
    assert words.shape[1] == 1 + 100 - query[0] - 1
    world = Dyck(length=words.shape[1])
    with torch.no_grad():
        said = model.probs(words)[:, -1]
    true = world.oracle(Batch(words, words, words > 0)).exp()[:, -1]
    assert float((true[0] - true[1]).norm()) == pytest.approx(twins.probs_distance)
    assert (said - true).norm(dim=-1).tolist() == pytest.approx(twins.errors, abs=1e-9)
    lengths = torch.full((2,), words.shape[1])
    assert world.log_probability(words, lengths).tolist() == pytest.approx([twins.log_probability] * 2)
    assert bool(world.completable(words, lengths).all())


@pytest.mark.parametrize(("types", "depth", "noise"), [(2, 4, 0.3), (2, 4, 0.03), (3, 2, 0.3), (2, 3, 1.0)])
def test_a_violation_forces_the_error_that_the_theorem_promises(types: int, depth: int, noise: float) -> None:
    model = disturbed(noise, types, depth)
    steepness, ratios = network_lipschitz(model), balance_report(model).ratios
    for d in range(2, depth + 1):
        for j in range(types):
            row = ratios[d - 2, j, :, 0]
            constant = 16 * depth * (8 * steepness / (math.sqrt(2) * 0.5) + 1)
            length = math.ceil(constant / row.max()) + 1
            level = int((row > constant / length).argmax())
            least = violation_bound(row[level], length, depth, steepness)
            assert least > 0.03  # the bound says something
            twins = pumped_twins(model, length, (d, j), (level + 1, 0))
            assert max(twins.errors) ** 2 >= least
            assert twins.log_loss >= length * math.log(0.25 / types**2) + math.log(least)


def test_the_bound_is_the_theorem_solved_for_epsilon() -> None:
    depth, steepness, length = 4, 5.0, 100_000
    for ratio in (0.1, 1.0):
        least = violation_bound(ratio, length, depth, steepness)
        closeness = (math.sqrt(2) * 0.5 - 2 * math.sqrt(least)) / steepness
        assert 16 * depth * (4 / closeness + 1) / length == pytest.approx(ratio)
    assert violation_bound(1e-6, length, depth, steepness) == 0.0
    with pytest.raises(sl.BadInput, match="above 8·depth"):
        violation_bound(0.5, 32, depth, steepness)


def test_a_balanced_model_tells_its_twins_apart_at_any_length() -> None:
    coordinates = torch.eye(17).double() + 0.1 * torch.randn(17, 17, generator=sl.rng(1), dtype=torch.float64)
    model = balanced_dyck(scores=random_balanced_scores(2, 4, rng=sl.rng(2)), coordinates=coordinates)
    for length in (100, 1_000_000):
        twins = pumped_twins(model, length, (3, 1), (2, 0))
        assert max(twins.errors) < 1e-6 and twins.distance > 0.1


def test_random_weights_confuse_their_twins_in_the_end() -> None:
    for seed in range(5):
        with sl.models.seeded(seed):
            model = BalanceTransformer(types=2, depth=3, widths=(16, 4), hidden=((8,),)).double()
        distances = [pumped_twins(model, length, (2, 0), (1, 1)).distance for length in (10**4, 10**6)]
        assert distances[1] / distances[0] == pytest.approx(0.01, rel=0.05)


def test_cancelling_values_exist_exactly_under_balance() -> None:
    for seed in range(10):
        scores = random_balanced_scores(2, 3, rng=sl.rng(seed))
        free = torch.randn(13, 13, generator=sl.rng(seed), dtype=torch.float64)
        assert balance_gap(scores, 2, 3) < 1e-12 and cancelling_residue(scores, 2, 3) < 1e-12
        assert balance_gap(free, 2, 3) > 0.1 and cancelling_residue(free, 2, 3) > 0.01


def test_the_lipschitz_constant_is_never_exceeded_by_the_network() -> None:
    model = balanced_dyck()
    layer = model.layers[0]

    def network(x: torch.Tensor) -> torch.Tensor:
        for index, part in enumerate(layer.maps):
            x = part(x)
            x = x.relu() if index + 1 < len(layer.maps) else x
        return x

    x = torch.randn(500, model.config.widths[0], generator=sl.rng(5), dtype=torch.float64)
    y = x + 0.1 * torch.randn(x.shape, generator=sl.rng(6), dtype=torch.float64)
    with torch.no_grad():
        steep = (network(x) - network(y)).norm(dim=1) / (x - y).norm(dim=1)
    assert float(steep.max()) <= network_lipschitz(model)
