"""What the exact studies share: the sources, tables of results, and a test of simulated leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy import stats

from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator, node_numbers

QUERIES = "Botta, Li, Mehta, Ash, Zhang & Risteski 2025"
WALKS = "Rohatgi, Shetty, Saless, Li, Moitra, Risteski & Foster 2025"
THESIS = "Li 2025 (thesis)"


def table(found: Sequence[Mapping[str, float]], *shape: int) -> dict[str, np.ndarray]:
    """Name → the results of all jobs as an array, of some shape when the jobs are listed row by row."""
    return {name: np.array([each[name] for each in found]).reshape(shape or -1) for name in found[0]}


def leaf_p_value(
    decoder: Decoder, tree: Tree, values: list[np.ndarray], probs: np.ndarray, runs: int, source: torch.Generator
) -> float:
    """Chi-square probability of the leaves that a decoder returns, under their exact probabilities.

    Leaves expected fewer than five times are counted together.
    """
    done = decoder.generate(
        TreeGenerator(tree),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=TableVerifier(values, tree.tokens),
        max_new=tree.depth,
        rng=source,
    )
    leaves = node_numbers(done.tokens, done.lengths, tree.tokens) - sum(len(level) for level in values[:-1])
    counts = np.bincount(leaves.numpy(), minlength=len(probs))
    rare = probs * runs < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(probs[~rare], probs[rare].sum()) * runs
    kept = expected > 0
    return float(stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue)
