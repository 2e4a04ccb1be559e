"""Temperature and nucleus against a plain implementation, and the random streams against their definition."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import sandlab as sl
from sandlab.decoding._session.streams import Streams, mix
from sandlab.decoding.decoders.base import draw, warp_logits


def nucleus(probs: np.ndarray, top_p: float) -> np.ndarray:
    order = sorted(range(len(probs)), key=lambda token: -probs[token])
    kept, total = [], 0.0
    for token in order:
        kept.append(token)
        total += probs[token]
        if total > top_p:
            break
    result = np.zeros_like(probs)
    result[kept] = probs[kept]
    return result / result.sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.floats(0.3, 2.0))
def test_temperature_then_nucleus(seed, top_p, temperature):
    probs = np.random.default_rng(seed).dirichlet(np.ones(7))
    sharp = probs ** (1 / temperature)
    expected = nucleus(sharp / sharp.sum(), top_p)
    ours = warp_logits(torch.from_numpy(np.log(probs))[None], temperature, top_p).exp().numpy()[0]
    assert np.allclose(ours, expected, atol=1e-12)


def test_no_temperature_and_no_nucleus_are_the_most_probable_token():
    logprobs = torch.log(torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))
    for probs in (warp_logits(logprobs, 0.0, 1.0), warp_logits(logprobs, 1.0, 0.0)):
        assert probs.exp().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert torch.allclose(warp_logits(logprobs, 1.0, 1.0).exp().float(), logprobs.exp())


def test_an_option_of_weight_zero_is_never_drawn():
    weights = torch.tensor([[0.0, 1.0, 0.0, 2.0, 0.0]]).expand(1002, 5)
    edges = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    drawn = draw(weights, torch.cat([torch.linspace(0, 1, 1001, dtype=torch.float64)[:-1], edges]))
    assert set(drawn.tolist()) == {1, 3}
    assert abs(float((drawn == 1).double().mean()) - 1 / 3) < 0.002


def splitmix(z: int) -> int:
    wrap = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & wrap
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wrap
    return z ^ (z >> 31)


@given(st.integers(-(2**63), 2**63 - 1))
def test_mixing_is_splitmix64(z):
    assert int(mix(torch.tensor([z]))) % 2**64 == splitmix(z % 2**64)


def test_streams_are_uniform_independent_and_each_its_own():
    streams = Streams.from_rng(20_000, sl.rng(0))
    rows = torch.arange(20_000)
    first, second = streams.uniform(rows), streams.uniform(rows)
    for numbers in (first, second):
        assert stats.kstest(numbers.numpy(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(20_000)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 4 / np.sqrt(20_000)
    alone = Streams(streams.keys[7:8])
    assert float(alone.uniform(torch.tensor([0]))) == float(first[7])
    assert float(alone.uniform(torch.tensor([0]))) == float(second[7])
