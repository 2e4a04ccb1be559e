import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits.ngrams.counting import lag_set_estimator, ngram_estimator
from sandlab.lenses.ngrams.stages import (
    Plateau,
    Stages,
    half_way,
    head_lag_mass,
    name_plateaus,
    named_stages,
    nearest_lag_set,
    plateau_levels,
    plateaus,
    steepest_drop,
)
from sandlab.worlds.ngrams.in_context import InContextNgrams


def stairs(levels: list[float], jumps: list[float], noise: float, steps: int = 800) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(steps)
    y = np.full(steps, levels[0])
    for before, after, jump in zip(levels[:-1], levels[1:], jumps):
        y = y + (after - before) / (1 + np.exp(-(x - jump * steps) / (0.01 * steps)))
    return x, y + noise * np.random.default_rng(0).normal(size=steps)


@pytest.mark.parametrize("noise", [0.0, 0.003, 0.01])
def test_the_stairs_of_a_curve_are_found_without_being_told(noise: float) -> None:
    levels = [1.0986, 1.058, 1.005, 0.93]
    found = plateaus(*stairs(levels, [0.05, 0.3, 0.6], noise))
    assert [each.loss for each in found][-3:] == pytest.approx(levels[1:], abs=0.005)
    assert found[-2].start == pytest.approx(0.33 * 800, abs=40) and found[-2].stop == pytest.approx(0.57 * 800, abs=40)
    named = name_plateaus(found[-3:], {"unigram": 1.0568, "bigram": 1.0135, "trigram": 0.9292})
    assert [each.name for each in named] == ["unigram", "bigram", "trigram"]


def test_a_short_plateau_between_rounded_falls_is_found() -> None:
    """Falls that start slowly and end slowly belong to no plateau, yet leave its middle flat."""
    steps = np.arange(0, 2601, 20)
    slow = 0.07 / (1 + np.exp((steps - 250) / 60)) + 0.1 / (1 + np.exp((steps - 1000) / 70))
    found = plateaus(steps, 0.89 + slow + 0.001 * np.random.default_rng(2).normal(size=len(steps)))
    assert [each.loss for each in found if each.stop < 900] == pytest.approx([0.99], abs=0.005)
    assert found[-1].loss == pytest.approx(0.89, abs=0.005)


def test_a_straight_fall_has_no_plateau() -> None:
    steps = np.arange(500)
    assert plateaus(steps, 1 - steps / 500) == []
    assert plateaus(steps, 1 - steps / 500 + 0.01 * np.random.default_rng(1).normal(size=500)) == []


def test_the_mass_of_a_look_back_head_is_at_its_lag() -> None:
    world = InContextNgrams(states=3, order=2, length=20)
    model = ngram_estimator(3, 2, 20)
    maps = sl.lenses.attention_maps(model, world.sample(2, rng=sl.rng(0)).inputs)["layers.0.attention.pattern"]
    mass = head_lag_mass(maps, 3, skip=2)
    assert mass.detach().numpy() == pytest.approx(np.array([[0, 1, 0, 0], [0, 0, 1, 0]]), abs=1e-9)
    uniform = torch.ones(1, 20, 20).tril() / torch.arange(1, 21).view(20, 1)
    assert float(head_lag_mass(uniform, 0, skip=4)[0, 0]) == pytest.approx(np.mean([1 / n for n in range(5, 21)]))


@pytest.mark.parametrize("lags", [(), (1,), (1, 2), (2,)])
def test_a_circuit_is_nearest_to_the_estimator_it_computes(lags: tuple[int, ...]) -> None:
    world = InContextNgrams(states=3, order=2, length=48, concentration=0.5)
    batch = world.sample(400, rng=sl.rng(1))
    contiguous = lags == tuple(range(1, len(lags) + 1))
    model = ngram_estimator(3, len(lags), 48) if contiguous else lag_set_estimator(3, lags, 48, mask_self=True)
    found = nearest_lag_set(model, world, batch)
    expected = {(): "unigram", (1,): "bigram", (1, 2): "trigram", (2,): "lags {2}"}[lags]
    assert found.name == [expected]
    assert float(found.distance[0]) < 0.1


def test_the_early_plateau_is_the_longest_clearly_above_the_last() -> None:
    stages = Stages([Plateau(0, 5, 1.0), Plateau(6, 15, 0.99), Plateau(16, 40, 0.905), Plateau(41, 50, 0.9)])
    assert stages.early == Plateau(6, 15, 0.99) and stages.last.loss == 0.9
    assert Stages([Plateau(0, 9, 1.0)]).early is None
    # After a jump of 0.3 a shoulder 0.03 above the end is no stage of its own.
    assert Stages([Plateau(0, 5, 0.78), Plateau(6, 20, 0.75)], drop=0.3).early is None


def test_a_plateau_is_named_by_what_is_nearest_most_often_on_it() -> None:
    steps = np.arange(0, 1000, 10)
    names = np.where(steps < 480, "bigram", "trigram")
    found = named_stages(steps, np.where(steps < 500, 1.0, 0.7), names)
    assert [each.name for each in found.found] == ["bigram", "trigram"] and found.drop == pytest.approx(0.3)
    none = named_stages(steps, 1 - steps / 1000, names)
    assert [each.name for each in none.found] == ["none"]


def test_levels_closer_than_two_hundredths_are_one() -> None:
    steps = np.arange(0, 1000, 10)
    stairs = 1.0 + 0.05 * (steps < 300) + 0.1 * (steps < 600)
    assert plateau_levels(steps, stairs) == 2
    assert plateau_levels(steps, np.where(steps < 500, 1.01, 1.0)) == 0


def test_the_way_down_is_measured_after_the_first_tenth() -> None:
    losses = np.array([[2.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.7, 0.5, 0.4, 0.4, 0.4], [1.0] * 11])
    found = half_way(np.arange(0, 110, 10), losses)
    assert found[0] == 60.0 and np.isnan(found[1])


def test_the_steepest_drop_is_read_with_the_gradient_around_it() -> None:
    loss = np.concatenate([np.linspace(3, 1, 20), np.ones(60), np.linspace(1, 0.5, 10), np.full(110, 0.5)])
    norm = np.where(np.abs(np.arange(200) - 85) < 6, 6.0, 2.0)
    burst, share = steepest_drop(loss, norm)
    assert burst == 3.0 and share == pytest.approx(1.0)
