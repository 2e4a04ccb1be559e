"""One circuit, several models: whatever the target and the coordinates, the function is the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab import rng
from sandlab.circuits._matching import look_back_keys, matching_circuit
from sandlab.circuits.builder import CircuitBuilder, CircuitLayer, Head
from sandlab.circuits.gadgets import Network, interpolate
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.circuits.targets import Frame, to_simplified, to_theory, to_transformer
from sandlab.worlds.ngrams.estimators import CountingEstimator

LENGTH = 12


def steps_so_far() -> CircuitBuilder:
    """x_t² + 2 x_{t−1} of letters 0 … 3, read out by a table: two layers, positions on a circle, two networks."""
    circuit = CircuitBuilder(4, LENGTH)
    letter = circuit.channel("letter", letters=np.arange(4))
    before, total = circuit.channel("letter before"), circuit.channel("total")
    circuit.layer(0).heads = [circuit.look_back(1, 1e5, [letter], [before], add=True)]
    circuit.layer(1).feed(interpolate(range(4), np.arange(4) ** 2), [letter], [total], add=True)
    circuit.layer(1).feed(Network([[[1.0]], [[2.0]]]), [before], [total], add=True)
    return circuit.read_number(total, 16)


def words() -> torch.Tensor:
    return torch.randint(4, (20, LENGTH), generator=rng(0))


def test_theory_and_ordinary_transformers_compute_what_the_circuit_says() -> None:
    tokens = words()
    before = torch.cat([tokens[:, :1], tokens[:, :-1]], 1)
    expected = tokens**2 + 2 * before
    for model in (to_theory(steps_so_far(), "a test"), to_transformer(steps_so_far())):
        assert torch.equal(model(tokens).argmax(-1), expected)
        assert torch.allclose(model(tokens).amax(-1), expected.double() ** 2, atol=1e-9)


def test_a_circuit_computes_the_same_in_every_frame() -> None:
    circuit = steps_so_far()
    random = np.linalg.qr(np.random.default_rng(0).normal(size=(circuit.width, circuit.width))).Q
    plain = to_transformer(circuit)(words())
    for frame in (Frame.mirrored(circuit.width), Frame.of(random), Frame.of(random + np.eye(circuit.width) / 3)):
        assert np.allclose(frame.write @ frame.read.T, np.eye(circuit.width))
        assert torch.allclose(to_transformer(circuit, frame=frame)(words()), plain, atol=1e-8)


def test_the_matching_circuit_is_the_counting_estimator_in_three_models() -> None:
    tokens = torch.randint(3, (50, 30), generator=rng(1))
    circuit = matching_circuit(3, 30, [look_back_keys(30, lag) for lag in (1, 2)], [0, 1], 40.0)
    estimator = CountingEstimator.of_order(3, 2, boundary="clamped")
    truth = estimator.probabilities(tokens)[:, -1]
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    additive = to_transformer(circuit, residual=(True, False), log_output=1e-300, read="last")
    for model in (additive, disentangle(additive), to_simplified(circuit)):
        assert float((model(tokens)[:, -1].detach().exp() - truth)[matched].abs().max()) < 1e-12


def test_networks_of_one_layer_run_side_by_side_and_add_up() -> None:
    layer = CircuitLayer()
    layer.feed(Network([[[1.0]], [[1.0]]]), [0], [2])
    layer.feed(interpolate(range(3), [5.0, 6.0, 7.0]), [1], [2])
    network = layer.network(3)
    assert network is not None and network.inputs == network.outputs == 3
    x = torch.tensor([[4.0, 0.0, 9.0], [1.0, 2.0, 9.0]], dtype=torch.float64)
    assert network(x).tolist() == [[0.0, 0.0, 9.0], [0.0, 0.0, 8.0]]


def test_an_entry_is_a_number_a_row_of_numbers_or_a_matrix() -> None:
    head = Head(query=[(1, 0, 2.0)], key=[([0, 2], range(2), 3.0)], value=[([0, 1], [1], np.array([[4.0], [5.0]]))])
    query, key, value, _ = head.matrices(3)
    assert query.tolist() == [[0, 0], [2, 0], [0, 0]]
    assert key.tolist() == [[3, 0], [0, 0], [0, 3]]
    assert value.tolist() == [[0, 4], [0, 5], [0, 0]]


def test_a_residual_layer_cannot_overwrite() -> None:
    circuit = steps_so_far()
    circuit.layer(1).feed(interpolate(range(4), np.zeros(4)), [0], [0])
    with pytest.raises(AssertionError, match="can only add"):
        to_transformer(circuit)
