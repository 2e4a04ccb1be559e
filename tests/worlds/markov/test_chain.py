"""Markov chains: stationary distributions by linear algebra, oracles by enumeration, samplers by counting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.special import betaln, gammaln

from sandlab import BadInput, rng
from sandlab.worlds.base import Batch
from sandlab.worlds.markov._walk import (
    _buffer,
    _loop,
    _scan,
    _torch_loop,
    binary_walk,
    dirichlet_rows,
    thresholds,
    walk,
)
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain, next_token_batch
from sandlab.worlds.markov.lifted import lifted_chain


def binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


@pytest.mark.parametrize(
    ("p", "q", "marginal_loss", "best_loss"),
    [(0.2, 0.3, 0.673012, 0.544587), (0.5, 0.8, 0.666278, 0.619015), (0.1, 0.1, 0.693147, 0.325083)],
)
def test_binary_chain_has_the_closed_form_losses(p, q, marginal_loss, best_loss):
    chain = MarkovChain.binary(p, q)
    pi = np.array([q, p]) / (p + q)
    assert chain.marginal_entropy() == pytest.approx(marginal_loss, abs=1e-6)
    assert chain.entropy_rate() == pytest.approx(best_loss, abs=1e-6)
    assert chain.entropy_rate() == pytest.approx(pi[0] * binary_entropy(p) + pi[1] * binary_entropy(q), abs=1e-12)
    assert chain.stationary().numpy() == pytest.approx(pi, abs=1e-14)
    assert chain.spectrum().real == pytest.approx([1.0, 1 - p - q], abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("states", [2, 3])
def test_stationary_distribution_is_the_left_eigenvector_of_the_chain_on_windows(states, order):
    chain = MarkovChain.random(states, order, seed=states + order)
    values, left = linalg.eig(lifted_chain(chain.table).numpy(), left=True, right=False)
    vector = left[:, np.argmin(abs(values - 1))].real
    assert chain.stationary().numpy() == pytest.approx(vector / vector.sum(), abs=1e-12)


def sequence_probability(chain: MarkovChain, tokens: tuple[int, ...]) -> float:
    """Probability of a token string: the window's probability times kernel entries, written out."""
    kernel, order = np.array(chain.kernel), chain.order
    window = chain.stationary().numpy().reshape([chain.states] * order)
    if len(tokens) <= order:
        return float(window[tokens].sum())
    probability = window[tokens[:order]]
    for t in range(order, len(tokens)):
        probability *= kernel[tokens[t - order : t]][tokens[t]]
    return float(probability)


@pytest.mark.parametrize(("states", "order"), [(2, 1), (3, 1), (2, 2), (2, 3), (3, 2)])
def test_fixed_chain_oracle_is_the_ratio_of_exact_sequence_probabilities(states, order):
    chain = MarkovChain.random(states, order, length=5, seed=1)
    strings = list(itertools.product(range(states), repeat=5))
    logs = chain.oracle(next_token_batch(torch.tensor([(*s, 0) for s in strings])))
    for string, rows in list(zip(strings, logs))[:: max(1, len(strings) // 40)]:
        for t in range(5):
            prefix = string[: t + 1]
            for a in range(states):
                truth = sequence_probability(chain, (*prefix, a)) / sequence_probability(chain, prefix)
                assert math.exp(rows[t, a]) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_fixed_chain_baselines_are_the_best_predictions_from_fewer_tokens(order):
    chain = MarkovChain.random(2, 2, length=4, seed=3)
    names = ["unigram", "bigram", "trigram"]
    tokens = torch.tensor(list(itertools.product(range(2), repeat=4)))
    logs = chain.baselines()[names[order]](next_token_batch(torch.nn.functional.pad(tokens, (0, 1))))
    for string, rows in zip(tokens.tolist(), logs):
        suffix = tuple(string[4 - order :]) if order else ()
        weight = [
            sum(sequence_probability(chain, (*u, *suffix, a)) for u in itertools.product(range(2), repeat=2 - order))
            for a in range(2)
        ]
        assert rows[-1].exp().numpy() == pytest.approx(np.array(weight) / sum(weight), abs=1e-12)


def test_uniform_start_predicts_uniformly_until_the_context_is_whole():
    chain = MarkovChain(kernel=MarkovChain.random(3, 2, seed=0).kernel, length=4, start="uniform")
    logs = chain.oracle(chain.sample(5, rng=rng(0)))
    assert torch.allclose(logs[:, 0].exp(), torch.tensor(1 / 3, dtype=torch.float64))
    assert not torch.allclose(logs[:, 1].exp(), torch.tensor(1 / 3, dtype=torch.float64))


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8), (0.9, 0.9), (1.0, 1.0), (0.3, 0.7)])
def test_binary_sampler_has_the_transition_frequencies_and_the_stationary_start(p, q):
    chain = MarkovChain.binary(p, q, length=50)
    batch = chain.sample(8000, rng=rng(5))
    before, after = batch.inputs.flatten(), batch.targets.flatten()
    assert float(after[before == 0].double().mean()) == pytest.approx(p, abs=0.01)
    assert float(1 - after[before == 1].double().mean()) == pytest.approx(q, abs=0.01)
    for t in (0, 1, 7, 49):
        assert float(batch.inputs[:, t].double().mean()) == pytest.approx(p / (p + q), abs=0.025)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_sampler_visits_windows_with_their_stationary_probabilities(order):
    chain = MarkovChain.random(3, order, length=40, seed=2)
    batch = chain.sample(20_000, rng=rng(1))
    for position in (0, 20):
        window = batch.inputs[:, position : position + order]
        code = (window * 3 ** torch.arange(order - 1, -1, -1)).sum(-1)
        frequency = torch.bincount(code, minlength=3**order).double() / len(code)
        assert float((frequency - chain.stationary()).abs().max()) < 0.015


@pytest.mark.parametrize(("states", "order", "steps"), [(2, 1, 1), (2, 1, 9), (3, 1, 64), (3, 2, 33), (2, 4, 20)])
def test_scan_over_maps_walks_exactly_like_the_loop_over_time(states, order, steps):
    generator = rng(7)
    kernels = thresholds(dirichlet_rows((50, states**order, states), 0.7, rng=generator))
    start = torch.randint(0, states, (50, order), generator=generator)
    uniform = torch.rand(steps, 50, generator=generator)
    plan = [(order + step, tuple(order + step - lag for lag in range(1, order + 1))) for step in range(steps)]
    loop = _loop(kernels, _buffer(start, order + steps), uniform, states, plan)
    assert torch.equal(loop, _scan(kernels, start, uniform, states))
    assert torch.equal(loop, _torch_loop(kernels, _buffer(start, order + steps), uniform, states, plan))


@pytest.mark.parametrize(("stay_up", "go_up"), [(0.7, 0.2), (0.2, 0.5), (0.0, 1.0), (1.0, 0.0), (0.5, 0.5)])
@pytest.mark.parametrize("steps", [1, 4, 5, 31])
def test_binary_walk_equals_the_step_by_step_rule(stay_up, go_up, steps):
    start = torch.tensor([0, 1, 1, 0, 1])
    walked = binary_walk(stay_up, go_up, start, steps, rng=rng(3))
    uniform = torch.rand(steps, 5, generator=rng(3))
    for example in range(5):
        state = int(start[example])
        assert walked[example, 0] == state
        for t in range(steps):
            state = int(uniform[t, example] < (stay_up if state else go_up))
            assert walked[example, t + 1] == state


def test_walk_with_many_states_and_gaps_between_lags_follows_the_kernel():
    states, lags = 11, (2, 3)
    kernels = torch.zeros(1, states**2, states, dtype=torch.float64)
    code = torch.arange(states**2)
    kernels[0, code, (code % states + 2 * (code // states)) % states] = 1.0
    start = torch.randint(0, states, (20, 3), generator=rng(0))
    tokens = walk(kernels, start, 30, lags, rng=rng(1))
    assert torch.equal(tokens[:, 3:], (tokens[:, 1:-2] + 2 * tokens[:, :-3]) % states)


@pytest.mark.parametrize("concentration", [0.01, 0.5, 1.0, 4.0])
def test_dirichlet_rows_have_the_moments_of_the_prior(concentration):
    rows = dirichlet_rows((40_000, 3), concentration, rng=rng(0))
    assert torch.allclose(rows.sum(-1), torch.ones(40_000, dtype=torch.float64))
    variance = (1 / 3) * (2 / 3) / (3 * concentration + 1)
    assert rows.mean(0).numpy() == pytest.approx([1 / 3] * 3, abs=0.01)
    assert rows.var(0).numpy() == pytest.approx([variance] * 3, rel=0.05)


def dirichlet_evidence(tokens: tuple[int, ...], states: int, order: int, alpha: float) -> float:
    """log P(x_order … | x_0 … x_{order−1}) integrated over independent Dirichlet rows, from Gamma functions."""
    counts: dict[tuple[int, ...], np.ndarray] = {}
    for t in range(order, len(tokens)):
        counts.setdefault(tokens[t - order : t], np.zeros(states))[tokens[t]] += 1
    total = 0.0
    for row in counts.values():
        total += gammaln(states * alpha) - gammaln(states * alpha + row.sum())
        total += (gammaln(alpha + row) - gammaln(alpha)).sum()
    return float(total)


@pytest.mark.parametrize(("states", "order", "alpha"), [(2, 1, 1.0), (3, 1, 0.5), (2, 2, 0.3), (3, 2, 2.0)])
def test_in_context_oracle_is_the_ratio_of_integrated_sequence_probabilities(states, order, alpha):
    world = InContextMarkov(states=states, order=order, length=7, concentration=alpha)
    batch = world.sample(12, rng=rng(0))
    best = world.oracle(batch).exp()
    for tokens, rows in zip(batch.inputs.tolist(), best):
        for t in range(7):
            prefix = tuple(tokens[: t + 1])
            for a in range(states):
                if t + 1 < order:
                    truth = 1 / states
                else:
                    ratio = dirichlet_evidence((*prefix, a), states, order, alpha)
                    truth = math.exp(ratio - dirichlet_evidence(prefix, states, order, alpha))
                assert float(rows[t, a]) == pytest.approx(truth, abs=1e-12)


def stationary_evidence(tokens: list[int], alpha: float) -> float:
    """P(tokens) of a binary chain with Beta(α, α) switches and a stationary start: a plain double sum over p and q."""
    nodes, weights = np.polynomial.legendre.leggauss(150)
    # p = s² takes the edge off the prior's end points and of 1/(p + q) at the corner.
    s, weights = (nodes + 1) / 2, weights / 2
    p = s**2 * (3 - 2 * s)
    jacobian = 6 * s * (1 - s)
    n = np.zeros((2, 2))
    for a, b in itertools.pairwise(tokens):
        n[a, b] += 1
    leave_0 = p ** (alpha - 1 + n[0, 1]) * (1 - p) ** (alpha - 1 + n[0, 0]) * jacobian * weights
    leave_1 = p ** (alpha - 1 + n[1, 0]) * (1 - p) ** (alpha - 1 + n[1, 1]) * jacobian * weights
    start = np.where(tokens[0] == 1, p[:, None], p[None, :]) / (p[:, None] + p[None, :])
    return float(leave_0 @ start @ leave_1 / math.exp(2 * betaln(alpha, alpha)))


@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_binary_oracle_with_a_stationary_start_uses_what_the_first_token_says(alpha):
    world = InContextMarkov(states=2, order=1, length=6, concentration=alpha, start="stationary")
    strings = list(itertools.product(range(2), repeat=6))
    best = world.oracle(next_token_batch(torch.tensor([(*s, 0) for s in strings]))).exp()
    plain = world.baselines()["bigram"](torch.tensor(strings)).exp()
    for i, string in enumerate(strings[::9]):
        for t in range(6):
            prefix = list(string[: t + 1])
            truth = stationary_evidence([*prefix, 1], alpha) / stationary_evidence(prefix, alpha)
            assert float(best[9 * i, t, 1]) == pytest.approx(truth, abs=2e-6)
    assert float((best - plain).abs().max()) > 0.01


def test_stationary_start_oracle_beats_the_count_predictor_that_ignores_the_start():
    world = InContextMarkov(states=2, order=1, length=4, concentration=0.5, start="stationary")
    batch = world.sample(40_000, rng=rng(2))
    counted = world.baselines()["bigram"](batch)
    loss = -counted.gather(-1, batch.targets.unsqueeze(-1)).mean()
    assert world.optimal_loss(batch) < float(loss) - 1e-4


@pytest.mark.parametrize("start", ["uniform", "stationary"])
@pytest.mark.parametrize("order", [1, 2])
def test_each_in_context_sequence_follows_its_own_kernel(order, start):
    world = InContextMarkov(states=2, order=order, length=4000, concentration=1.0, start=start)
    batch = world.sample(20, rng=rng(4))
    probs = world.next_probs(batch)
    surprise = torch.nn.functional.one_hot(batch.targets, 2) - probs
    assert float(surprise.mean(1).abs().max()) < 0.04
    rows = batch.truth["kernels"]
    seen = batch.inputs[:, order - 1 :] * 1
    if order == 2:
        seen = seen + 2 * batch.inputs[:, :-1]
    picked = rows.gather(1, seen.unsqueeze(-1).expand(-1, -1, 2))
    assert torch.allclose(probs[:, order - 1 :], picked)


def test_contract_shapes_and_optimality_of_the_in_context_oracle():
    world = InContextMarkov(states=3, order=1, length=64, concentration=1.0)
    batch = world.sample(2000, rng=rng(0))
    assert world.oracle(batch).shape == (2000, 64, 3)
    assert world.oracle(batch).dtype == torch.float64
    losses = {}
    for name, predict in world.baselines().items():
        losses[name] = float(-predict(batch).gather(-1, batch.targets.unsqueeze(-1)).mean())
    assert losses["uniform"] == pytest.approx(math.log(3))
    assert losses["bigram"] == pytest.approx(world.optimal_loss(batch))
    assert losses["bigram"] < losses["unigram"] < losses["uniform"]


def test_same_seed_gives_the_same_examples_and_other_seeds_do_not():
    world = InContextMarkov(states=3, order=2, length=20)
    first, again, other = (world.sample(8, rng=rng(seed)).inputs for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_expected_row_entropy_matches_a_monte_carlo_mean():
    world = InContextMarkov(states=4, concentration=0.5)
    rows = dirichlet_rows((200_000, 4), 0.5, rng=rng(0))
    assert world.expected_row_entropy() == pytest.approx(float(torch.special.entr(rows).sum(-1).mean()), abs=3e-3)


def test_descriptions_name_both_habits():
    assert "trigram (n = 3" in InContextMarkov(order=2).describe()
    assert "2-gram by previous tokens" in InContextMarkov(order=2).describe()


@settings(max_examples=60, deadline=None)
@given(
    states=st.integers(-3, 1) | st.just(2.5) | st.just(True),
    order=st.integers(-3, 0),
    length=st.integers(-3, 0),
    concentration=st.floats(max_value=0.0) | st.just(math.nan),
)
def test_impossible_parameters_are_refused_by_name(states, order, length, concentration):
    bad = {"states": states, "order": order, "length": length, "concentration": concentration}
    for name, value in bad.items():
        with pytest.raises(BadInput, match=name):
            InContextMarkov(**{name: value})


@pytest.mark.parametrize(
    "kernel",
    [((0.5, 0.6), (0.5, 0.5)), ((1.0,),), ((0.5, 0.5), (0.5,)), "abc", ((-0.1, 1.1), (0.5, 0.5)), ((0.5, 0.5),), 3],
)
def test_a_kernel_that_is_no_kernel_is_refused(kernel):
    with pytest.raises(BadInput, match="kernel"):
        MarkovChain(kernel=kernel)


def test_a_chain_with_two_stationary_distributions_is_refused():
    with pytest.raises(BadInput, match="stationary"):
        MarkovChain(kernel=((1.0, 0.0), (0.0, 1.0)))
    with pytest.raises(BadInput, match="p"):
        MarkovChain.binary(0.0, 0.0)
    with pytest.raises(BadInput, match="start"):
        InContextMarkov(start="stationery")


def test_optimal_loss_of_a_fixed_chain_approaches_its_entropy_rate():
    chain = MarkovChain.binary(0.2, 0.3, length=200)
    batch = chain.sample(2000, rng=rng(0))
    assert isinstance(batch, Batch)
    assert chain.optimal_loss(batch) == pytest.approx(chain.entropy_rate(), abs=3e-3)
