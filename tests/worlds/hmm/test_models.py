"""HMMs: joints and predictors against enumeration, samples against the joint, twins equal where they must be."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.hmm.doubly_stochastic import (
    birkhoff,
    circulant,
    random_doubly_stochastic,
    sinkhorn,
    sinkhorn_jacobian,
)
from sandlab.worlds.hmm.instances import make_ghmm, make_hmm, named_hmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.tasks import MaskedTask


def enumerated_joint(hmm: HMM, length: int) -> np.ndarray:
    """P(x₁ … x_L) as a sum over all hidden paths, in plain Python."""
    joint = np.zeros([hmm.vocab] * length)
    for path in itertools.product(range(hmm.hidden), repeat=length):
        weight = 1 / hmm.hidden * np.prod([hmm.T[b, a] for a, b in itertools.pairwise(path)])
        for tokens in itertools.product(range(hmm.vocab), repeat=length):
            joint[tokens] += weight * np.prod([hmm.O[x, h] for x, h in zip(tokens, path)])
    return joint


def test_the_joint_equals_the_sum_over_all_hidden_paths() -> None:
    hmm = random_hmm(3, 3, np.random.default_rng(0))
    np.testing.assert_allclose(hmm.joint(4), enumerated_joint(hmm, 4), atol=1e-15)


@pytest.mark.parametrize("text", ["2|1", "3|1", "1|3", "2x3|1", "1x3|2", "1x2|3", "2|1,3", "1x3|2,4", "1x2x4|3"])
def test_every_predictor_is_the_conditional_mean_of_the_enumerated_joint(text: str) -> None:
    hmm, task = random_hmm(3, 3, np.random.default_rng(1)), MaskedTask.parse(text)
    joint = hmm.joint(4)
    others = tuple(time - 1 for time in range(1, 5) if time not in task.times)
    kept = joint.sum(others) if others else joint
    order = [task.times.index(time) for time in (*task.given, *task.targets)]
    ordered = kept.transpose(order).reshape(3 ** len(task.given), *[3] * len(task.targets))
    expected = ordered / ordered.reshape(len(ordered), -1).sum(1).reshape(-1, *[1] * len(task.targets))
    np.testing.assert_allclose(hmm.predictor(task), expected, atol=1e-14)


def test_the_canonical_model_has_the_known_singular_values() -> None:
    hmm = named_hmm("hmm-canon")
    assert np.linalg.svd(hmm.means)[1] == pytest.approx([0.8905, 0.6, 0.4764], abs=1e-4)
    assert np.linalg.svd(hmm.T)[1] == pytest.approx([1, 0.7053, 0.7053], abs=1e-4)
    assert all(hmm.check_assumptions().values())


def test_printed_determinants_of_the_source_are_volumes() -> None:
    for name in ("hmm-thm6", "hmm-thm6-twin"):
        hmm = named_hmm(name)
        assert np.sqrt(np.linalg.det(hmm.means.T @ hmm.means)) == pytest.approx(0.0110449, abs=1e-7)
        assert np.linalg.det(hmm.T) == pytest.approx(-0.161066, abs=1e-6)
        assert hmm.means.sum(1) == pytest.approx([0.75] * 4, abs=1e-7)


def test_samples_follow_the_joint_law_token_by_token_and_streamed() -> None:
    hmm = HMM()
    batch = hmm.sample(200_000, rng=sl.rng(0))
    counts = np.zeros([4] * 3)
    np.add.at(counts, tuple(batch.inputs.numpy().T), 1)
    np.testing.assert_allclose(counts / counts.sum(), hmm.joint(3), atol=4e-3)
    streamed = hmm.string_counts(200_000, rng=sl.rng(1), chunk=30_000)
    assert streamed.sum() == 200_000
    np.testing.assert_allclose(streamed / 200_000, hmm.joint(3), atol=4e-3)


def test_the_oracle_is_the_conditional_law_of_the_joint() -> None:
    hmm = HMM()
    batch = hmm.sample(8, rng=sl.rng(0))
    joint = hmm.joint(4)
    for tokens, log_probs in zip(batch.inputs.numpy(), hmm.oracle(batch)):
        row = joint[tuple(tokens)]
        np.testing.assert_allclose(log_probs[-1].exp().numpy(), row / row.sum(), atol=1e-12)


def test_the_gaussian_predictor_is_the_average_of_sampled_neighbours() -> None:
    ghmm = GaussianHMM()
    batch = ghmm.sample(400_000, rng=sl.rng(0))
    x = batch.truth["observations"].numpy()
    error = x[:, 1] - ghmm.predictor("2|1", x[:, 0])
    for weight in (np.ones(len(x)), x[:, 0, 0], np.tanh(x[:, 0, 1])):
        assert np.abs((error * weight[:, None]).mean(0)).max() < 0.01


def test_the_gaussian_density_integrates_to_one() -> None:
    ghmm = make_ghmm(np.array([[1.0, 0.6]]), np.array([[0.7, 0.3], [0.3, 0.7]]))
    grid = np.linspace(-9, 10, 4001)[:, None]
    assert ghmm.density(grid, np.array([[0.3]])).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1, abs=1e-10)


def test_the_gaussian_oracle_of_the_first_token_is_the_posterior() -> None:
    ghmm = GaussianHMM(length=2)
    batch = ghmm.sample(16, rng=sl.rng(3))
    posterior = ghmm.posterior(batch.inputs[:, 0].numpy())
    np.testing.assert_allclose(ghmm.oracle(batch)[:, 0].exp().numpy(), posterior, atol=1e-6)


@pytest.mark.parametrize("draw", [random_doubly_stochastic, birkhoff])
def test_sampled_transitions_are_doubly_stochastic(draw: object) -> None:
    matrix = draw(5, np.random.default_rng(0))  # type: ignore[operator]
    np.testing.assert_allclose([matrix.sum(0), matrix.sum(1)], 1, atol=1e-9)
    assert matrix.min() >= 0
    np.testing.assert_allclose(circulant([0.8, 0.15, 0.05]), HMM().T)


def test_the_jacobian_of_sinkhorn_s_matrix_is_that_of_its_alternations() -> None:
    logits = torch.randn(3, 4, 4, dtype=torch.float64, generator=sl.rng(0))
    unrolled = torch.func.vmap(torch.func.jacfwd(lambda each: sinkhorn(each, 300)))(logits)
    torch.testing.assert_close(sinkhorn_jacobian(sinkhorn(logits, 300)), unrolled, atol=1e-9, rtol=0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's own peak from /proc")
@pytest.mark.parametrize("count", [4 * 10**7, pytest.param(10**8, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_number_of_counted_triples(count: int) -> None:
    """Beyond the first 4·10⁶, two chunks, the peak grows by less than half of what draws and strings would take.

    Before them it grows by what the libraries load with their first large call, which differs between machines. The
    peak is the process's own: that of getrusage starts at the peak of the process that called it.
    """
    code = (
        "import re, sandlab as sl; hmm = sl.worlds.HMM(); sizes = []\n"
        f"for n in (4 * 10**6, {count}):\n"
        "    assert hmm.string_counts(n, rng=sl.rng(0)).sum() == n\n"
        "    sizes.append(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]))\n"
        "print(sizes[1] - sizes[0])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 8 * count / 1000  # kilobytes; a draw and its string are of eight bytes each


def test_bad_models_and_tasks_are_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput, match="columns"):
        make_hmm(np.array([[0.5, 0.5], [0.1, 0.5]]), np.eye(2))
    with pytest.raises(BadInput, match="task must look like"):
        MaskedTask.parse("2 given 1")
    with pytest.raises(BadInput, match="not given"):
        MaskedTask.parse("2|2")
    with pytest.raises(BadInput, match="infinitely many"):
        random_ghmm(2, 2, np.random.default_rng(0)).predictor("2|1")
