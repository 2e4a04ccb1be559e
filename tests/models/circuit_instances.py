"""A small instance and an input of every registered circuit that is a model by itself; of the others, what they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import sandlab as sl
from sandlab.worlds.automata.algebra.groups import FiniteGroup
from sandlab.worlds.parallel.finite import FiniteLaw
from sandlab.worlds.topics.masking import MaskedStatistics

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
from pictures import CIRCUITS

Instance = tuple[torch.nn.Module, torch.Tensor]
LETTERS = 6


def _on(construction: str, machine: str) -> Callable[[], Instance]:
    """A construction on a named machine, and words of its letters."""

    def make() -> Instance:
        world = sl.worlds.named_machine(machine)
        words = torch.randint(world.alphabet, (2, LETTERS), generator=sl.rng(0))
        return sl.get("circuits", construction)(world, LETTERS), words

    return make


def _bits(*shape: int) -> torch.Tensor:
    return torch.randint(2, shape, generator=sl.rng(1))


def _sites(model: torch.nn.Module) -> Instance:
    return model, _bits(2, 3)


MORE: dict[str, Callable[[], Instance]] = {
    "scan-circuit": _on("scan-circuit", "S3"),
    "krohn-rhodes-circuit": _on("krohn-rhodes-circuit", "abab"),
    "gridworld-circuit": _on("gridworld-circuit", "Grid4"),
    "memory-circuit": _on("memory-circuit", "Memory3"),
    "counter-circuit": _on("counter-circuit", "C3"),
    "sine-counter-circuit": _on("sine-counter-circuit", "C3"),
    "direct-product-circuit": _on("direct-product-circuit", "C2^2"),
    "semidirect-circuit": _on("semidirect-circuit", "D6"),
    "series-circuit": _on("series-circuit", "D6"),
    "group-circuit": _on("group-circuit", "D6"),
    "permutation-reset-circuit": _on("permutation-reset-circuit", "Memory3"),
    "sequential-circuit": _on("sequential-circuit", "S3"),
    "rnn-circuit": _on("rnn-circuit", "S3"),
    "wreath-circuit": lambda: (sl.circuits.wreath_circuit(FiniteGroup.cyclic(2), 2, LETTERS), _bits(2, LETTERS)),
    "flip-flop-parser": lambda: (
        sl.circuits.flip_flop_parser(),
        sl.worlds.FlipFlop.ignoring(0.5, length=8).sample(2, rng=sl.rng(0)).inputs,
    ),
    "parity-state-space": lambda: (sl.circuits.parity_state_space(), _bits(2, 8)),
    "kernel-predictor": lambda: (sl.circuits.kernel_predictor(0.2, 0.3, length=8), _bits(2, 8)),
    "marginal-predictor": lambda: (sl.circuits.marginal_predictor(0.2, 0.3, length=8), _bits(2, 8)),
    "three-parameter-transformer": lambda: (
        sl.circuits.three_parameter_transformer(0.5, 0.4, 0.2, length=8),
        _bits(2, 8),
    ),
    "suffix-table": lambda: (
        sl.circuits.suffix_table(sl.worlds.MarkovChain.binary(0.2, 0.3, length=8), (1,)),
        _bits(2, 8),
    ),
    "outer-product-memory": lambda: (sl.circuits.outer_product_memory(torch.arange(6), 5), torch.arange(6)[:, None]),
    "embedding-topics": lambda: (sl.circuits.embedding_topics(MaskedStatistics(4, 3, 2)), _bits(2, 8)),
    "value-topics": lambda: (sl.circuits.value_topics(MaskedStatistics(4, 3, 2)), _bits(2, 8)),
    "deterministic-map": lambda: _sites(sl.circuits.deterministic_map(np.array([[0, 1, 1], [1, 0, 0]] * 4), 2)),
    "product-chain": lambda: _sites(sl.circuits.product_chain(np.full((8, 3, 2), 0.5))),
    "gibbs-site-step": lambda: _sites(sl.circuits.gibbs_site_step(FiniteLaw(2, np.full(8, 1 / 8)), 1)),
}
INSTANCES: dict[str, Callable[[], Instance]] = {**CIRCUITS, **MORE}
PARTS = {
    **dict.fromkeys(
        (
            *("compose-functions", "hot-index", "indexing", "interpolate", "look-up", "prune-linear"),
            *("select-network", "step-up", "tabulate"),
        ),
        "a network on vectors, a part of circuits",
    ),
    **dict.fromkeys(("prune-bilinear", "prune-layer", "prune-transformer"), "pruned weights"),
}
"""Registered circuits that are no models: parts of others."""

MODELS = {
    "transformer": lambda: sl.models.Transformer(vocab=4, length=12, width=8, layers=2, positions="sinusoidal"),
    "lstm": lambda: sl.models.LSTM(vocab=4, width=8),
    "rnn": lambda: sl.models.RNN(vocab=4, width=8),
    "state-space": lambda: sl.models.StateSpace(vocab=4, width=8),
    "hybrid": lambda: sl.models.Hybrid(vocab=4, width=8, layers=2, length=12),
}
