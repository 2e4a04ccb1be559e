"""Every construction equals the counting estimator it computes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.ngrams.counting import all_heads_bigram, heads_for_lags, lag_set_estimator, ngram_estimator
from sandlab.lenses.ngrams.theory import first_layer_weights, second_layer_bounds
from sandlab.models.hooks import record
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams


def sequences(states: int, length: int, examples: int = 64, seed: int = 0) -> torch.Tensor:
    return InContextNgrams(states, 1, length, 1.0).sample(examples, rng=rng(seed)).inputs


def worst_gap(model, estimator: CountingEstimator, tokens: torch.Tensor) -> float:
    """Largest difference of probabilities on the sequences where something matches."""
    found = model(tokens)[:, -1].exp().detach()
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    assert matched.any()
    return float((found - estimator.probabilities(tokens)[:, -1])[matched].abs().max())


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5])
def test_construction_of_every_order_equals_the_clamped_estimator(states, order):
    length = 48
    model = ngram_estimator(states, order, length, temperature=40.0)
    estimator = CountingEstimator.of_order(states, order, boundary="clamped")
    assert worst_gap(model, estimator, sequences(states, length)) < 1e-12


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_a_reserved_first_token_makes_the_construction_equal_the_strict_estimator(states, order):
    model = ngram_estimator(states, order, 40, boundary="bos")
    estimator = CountingEstimator.of_order(states, order, boundary="strict")
    assert worst_gap(model, estimator, sequences(states, 40, 256)) < 1e-12


@pytest.mark.parametrize("options", [{"merged": True}, {"value": False}, {"merged": True, "value": False}])
def test_merged_and_value_free_models_compute_the_same(options):
    tokens = sequences(3, 24)
    plain, other = ngram_estimator(3, 2, 24, heads=3), ngram_estimator(3, 2, 24, heads=3, **options)
    torch.testing.assert_close(other(tokens), plain(tokens), atol=1e-10, rtol=0)


def test_clamped_and_strict_estimators_really_differ():
    tokens = sequences(3, 64, 512)
    for order, largest in ((1, 0.02), (2, 0.05)):
        clamped, strict = (
            CountingEstimator.of_order(3, order, boundary=boundary).probabilities(tokens)[:, -1]
            for boundary in ("clamped", "strict")
        )
        assert float((clamped - strict).abs().max()) > largest


@pytest.mark.parametrize("order", [1, 2, 3])
def test_reading_every_position_gives_the_estimator_of_every_prefix(order):
    model = ngram_estimator(3, order, 30, read="all")
    estimator = CountingEstimator.of_order(3, order, boundary="clamped")
    tokens = sequences(3, 30)
    gap = (model(tokens).exp().detach() - estimator.probabilities(tokens)).abs().amax(-1)
    assert float(gap[estimator.counts(tokens).sum(-1) > 0].max()) < 1e-12


@pytest.mark.parametrize(
    ("states", "order", "length"), [(3, 1, 64), (5, 2, 128), (3, 3, 128), (2, 4, 96), (2, 5, 128), (4, 5, 64)]
)
def test_error_falls_with_the_temperature_within_the_predicted_bound(states, order, length):
    tokens = sequences(states, length, 128)
    estimator = CountingEstimator.of_order(states, order, boundary="clamped")
    errors = []
    for c in (10.0, 15.0, 20.0):
        errors.append(worst_gap(ngram_estimator(states, order, length, temperature=c), estimator, tokens))
        assert errors[-1] <= c * length * torch.exp(torch.tensor(-c)).item()
    # Five more degrees are a factor e⁻⁵ and the polynomial in c.
    assert errors[1] < errors[0] * 0.02 and errors[2] < errors[1] * 0.02


def test_first_layer_attention_has_its_closed_form():
    c, lag, length = 3.0, 2, 12
    model = ngram_estimator(3, 2, length, temperature=c)
    with record(model, "layers.0.attention.pattern") as cache:
        model(sequences(3, length, 1))
    pattern = cache["layers.0.attention.pattern"][0, lag - 1]
    for i in range(lag, length):
        on, off = first_layer_weights(i, c)
        assert on == pytest.approx(math.exp(c) / (i + math.exp(c)), abs=1e-14)
        assert float(pattern[i, i - lag].detach()) == pytest.approx(on, abs=1e-12)
        others = [float(pattern[i, j].detach()) for j in range(i + 1) if j != i - lag]
        assert others == pytest.approx([off] * i, abs=1e-12)


def test_second_layer_attends_to_the_matches_alone():
    tokens = torch.tensor([[1, 2, 0, 1, 1, 2, 0, 2, 1, 0, 2]])
    model = ngram_estimator(3, 2, 11)
    with record(model, "layers.1.attention.pattern") as cache:
        model(tokens)
    pattern = cache["layers.1.attention.pattern"][0, 0, -1]
    history = tokens[0, -2:].tolist()
    matches = [at for at in range(2, 11) if tokens[0, at - 2 : at].tolist() == history]
    assert matches == [8]
    assert (pattern > 0.5 / len(matches)).nonzero().flatten().tolist() == matches


@pytest.mark.parametrize(("order", "c"), [(1, 12.0), (2, 12.0), (2, 16.0)])
def test_second_layer_weights_stay_within_their_bounds(order, c):
    length = 64
    tokens = sequences(3, length, 64)
    model = ngram_estimator(3, order, length, temperature=c)
    with torch.no_grad(), record(model, "layers.1.attention.pattern") as cache:
        model(tokens)
    pattern = cache["layers.1.attention.pattern"][:, 0, -1]
    contexts = CountingEstimator.of_order(3, order, boundary="clamped").contexts(tokens)
    match = contexts[:, :-1] == contexts[:, -1:]
    for row, hit in zip(pattern, match):
        size = int(hit.sum())
        if size == 0:
            continue
        low, high, elsewhere = second_layer_bounds(size, order, length, c)
        assert low <= float(row[hit].min()) and float(row[hit].max()) <= high
        assert float(row[~hit].max()) <= elsewhere
        assert high - low < 0.1 / size


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5])
def test_all_heads_on_one_lag_compute_the_clamped_bigram(states, heads):
    model = all_heads_bigram(states, heads, 50)
    estimator = CountingEstimator.of_order(states, 1, boundary="clamped")
    assert worst_gap(model, estimator, sequences(states, 50)) < 1e-12


@pytest.mark.parametrize("lags", [(1, 2, 1), (2, 1), (3, 1, 2, 2), (1, 1, 2), (5, 4, 3, 2, 1), (1, 2, 3, 4, 4)])
def test_any_assignment_of_heads_to_lags_computes_the_same_estimator(lags):
    model = heads_for_lags(3, 60, lags)
    estimator = CountingEstimator.of_order(3, max(lags), boundary="clamped")
    assert worst_gap(model, estimator, sequences(3, 60)) < 1e-12


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "lags", [lags for size in (1, 2, 3, 4, 5) for lags in itertools.combinations(range(1, 6), size)]
)
def test_lag_set_construction_equals_the_estimator_that_counts_the_last_position(states, lags):
    model = lag_set_estimator(states, lags, 96)
    estimator = CountingEstimator(states, lags, boundary="clamped", count_self=True)
    assert worst_gap(model, estimator, sequences(states, 96)) < 1e-12


@pytest.mark.parametrize("lags", [(2,), (1, 3)])
def test_without_self_attention_the_lag_set_construction_leaves_the_last_position_out(lags):
    length = 64
    tokens = sequences(3, length)
    model = lag_set_estimator(3, lags, length, mask_self=True)
    # By hand: positions 0 … T − 2 whose clamped history agrees with the query's.
    found = model(tokens)[:, -1].exp()
    for row, probs in zip(tokens.tolist(), found):
        followers = [
            row[at] for at in range(length - 1) if all(row[max(at - lag, 0)] == row[length - lag] for lag in lags)
        ]
        if followers:
            counts = torch.bincount(torch.tensor(followers), minlength=3).double()
            assert torch.allclose(probs, counts / counts.sum(), atol=1e-12)


def test_the_self_match_moves_the_lag_set_construction_away_from_the_plain_estimator():
    tokens = sequences(3, 96, 512)
    plain = CountingEstimator(3, (1, 3), boundary="clamped").probabilities(tokens)[:, -1]
    counted = CountingEstimator(3, (1, 3), boundary="clamped", count_self=True).probabilities(tokens)[:, -1]
    assert float((plain - counted).abs().max()) > 0.1


def test_extra_heads_stay_silent():
    tokens = sequences(3, 40)
    few, many = ngram_estimator(3, 1, 40), ngram_estimator(3, 1, 40, heads=4)
    assert torch.allclose(few(tokens), many(tokens), atol=1e-12)


def test_every_short_sequence_gives_the_clamped_estimator():
    model = ngram_estimator(2, 2, 7)
    tokens = torch.tensor(list(itertools.product(range(2), repeat=7)))
    estimator = CountingEstimator.of_order(2, 2, boundary="clamped")
    assert worst_gap(model, estimator, tokens) < 1e-12


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ngram_estimator(3, -1, 10), "order"),
        (lambda: ngram_estimator(3, 3, 10, heads=2), "heads"),
        (lambda: heads_for_lags(3, 10, (1, 3)), "lags"),
        (lambda: lag_set_estimator(3, (0,), 10), "lag"),
        (lambda: lag_set_estimator(3, (1, 3), 10, heads=1), "heads"),
        (lambda: ngram_estimator(3, 2, 10, boundary="wrap"), "boundary"),
        (lambda: ngram_estimator(3, 2, 10, temperature=-1.0), "temperature"),
    ],
)
def test_impossible_constructions_are_refused_by_name(make, named):
    with pytest.raises(BadInput, match=named):
        make()
