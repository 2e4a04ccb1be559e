"""What the decoding page shows is what the Python API computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.atlas.views.decoding import ALGORITHMS, RULES, race, refine, walk
from sandlab.errors import BadInput


def test_a_walk_writes_and_takes_back_one_letter_at_a_time() -> None:
    film = walk("vgb", depth=4, error=0.5, run=1)
    strings = [each["string"] for each in film["moments"]]
    assert strings[0] == [] and strings[-1] == film["string"] and film["all"] == len(strings)
    for before, after, each in zip(strings, strings[1:], film["moments"][1:]):
        assert after == before[:-1] if each["kind"] == "erased" else after[:-1] == before
    erased = sum(each["kind"] == "erased" for each in film["moments"])
    assert erased == film["calls"]["tokens_erased"] > 0
    assert film["string"].count(0) == film["string"].count(1)


def test_values_of_the_prefixes_are_exact_without_error() -> None:
    film = walk("value-guided", depth=4, error=0.0)
    tree = sl.decoding.Tree.random(2, 4, rng=sl.rng(0))
    tilt = np.array([float(sum(word) == 2) for word in tree.strings()])
    for shown, level in zip(film["values"], tree.values(tilt)):
        np.testing.assert_allclose(shown, level, atol=1e-6)


def test_the_race_compares_draws_with_exact_laws_at_equal_cost() -> None:
    found = race(depth=4, draws=600, error=0.5)
    tree = sl.decoding.Tree.random(2, 4, rng=sl.rng(0))
    tilt = np.array([float(sum(word) == 2) for word in tree.strings()])
    target = sl.decoding.restricted_distribution(tree, tilt)
    np.testing.assert_allclose(found["target"], sorted(target, reverse=True), atol=1e-6)
    runners = {each["name"]: each for each in found["runners"]}
    assert list(runners) == list(ALGORITHMS)
    for runner in runners.values():
        drawn = np.array(runner["counts"]) / runner["drawn"]
        # 600 draws over at most 16 strings: E TV ≤ ½ Σ √(p/n) < 0.09; 0.15 is far outside.
        assert 0.5 * np.abs(drawn - runner["exact"]).sum() < 0.15
        costs = [point["cost"] for point in runner["curve"]]
        assert costs == sorted(costs) and abs(costs[-1] / 600 - runner["cost"]) < 0.01
    assert runners["rejection"]["limit"] == pytest.approx(0, abs=1e-9)
    assert runners["value-guided"]["limit"] > 0.01 and runners["tokenwise-rejection"]["limit"] > 0.01
    assert race(depth=4, draws=10, error=0.0)["runners"][3]["limit"] == pytest.approx(0, abs=1e-9)


def test_every_rule_can_be_played_and_nonsense_is_refused() -> None:
    for rule in RULES:
        assert RULES[rule](tuple(walk("rejection", depth=4, rule=rule)["string"]))
    for wrong in ({"depth": 9}, {"tokens": 3, "depth": 7}, {"rule": "none"}, {"algorithm": "magic"}, {"error": -1.0}):
        with pytest.raises(BadInput):
            walk(**wrong)


def test_blocks_reach_the_exact_law_and_all_at_once_does_not() -> None:
    found = refine(sites=6, coupling=0.5, steps=30)
    films = {film["name"]: film for film in found["films"]}
    law = sl.worlds.Ising(sites=6, coupling=0.5, edges="cycle").law
    agree = float(law.probs @ (law.states == np.roll(law.states, 1, 1)).mean(1))
    assert found["agree"] == pytest.approx(agree)
    for name in ("blocks of 3", "two colours"):
        assert films[name]["distance"][-1] < 0.2 and abs(films[name]["agree"][-1] - agree) < 0.06
    assert films["all sites at once"]["distance"][-1] > 0.3
    one = films["one site (Gibbs)"]
    for before, after, hidden in zip(one["states"], one["states"][1:], one["hidden"]):
        assert sum(hidden) == 1 and all(h or a == b for a, b, h in zip(before, after, hidden))


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("algorithm", ["vgb", "backtracking"])
def test_the_lines_beside_a_walk_give_its_string(algorithm: str, rule: str) -> None:
    film = walk(algorithm, depth=4, rule=rule, error=0.5, run=1)
    *lines, last = film["code"].split("\ndecoder.generate")
    names: dict[str, object] = {"sl": sl, "np": np}
    exec("\n".join(lines), names)
    assert eval(f"decoder.generate{last}", names).generated(0) == film["string"]


def test_the_lines_beside_a_race_and_a_refinement_give_their_numbers() -> None:
    found = race(depth=4, error=0.5, draws=20)
    *lines, last = found["code"].split("\n")
    names: dict[str, object] = {"sl": sl, "np": np, "torch": torch}
    exec("\n".join(lines), names)
    assert eval(last, names) == pytest.approx(found["runners"][3]["limit"])
    shown = refine(sites=5, block=2, steps=4)
    *lines, last = shown["code"].split("\n")
    exec("\n".join(lines), names)
    assert eval(last, names).states[:, 0].tolist() == shown["films"][1]["states"]
