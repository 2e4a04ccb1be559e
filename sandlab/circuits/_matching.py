"""The circuit of the in-context estimators: copy earlier tokens, find where the copies agree, average those tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Entry, Head

__all__ = ["look_back_keys", "matching_circuit"]


def look_back_keys(tokens: int, lag: int) -> list[int]:
    """The position `lag` before each position, the first one where there is none."""
    return [max(i - lag, 0) for i in range(tokens)]


def matching_circuit(
    states: int,
    length: int,
    keys: Sequence[Sequence[int]],
    queries: Sequence[int],
    temperature: float,
    *,
    anchors: int = 0,
    silent: Sequence[int] = (),
) -> CircuitBuilder:
    """Layer 1 copies tokens, layer 2 averages the tokens whose copies agree with those of the query.

    keys[h][i] is the position from which head h copies the token to position i. The copy is block h + 1; block 0 is the
    token itself. Layer 2 compares the query's block queries[h] with the key's block h + 1, each by an identity √c. For
    the last query, silent keys lose twice what all matches together gain.
    """
    circuit, width = CircuitBuilder(states, length, anchors), states + anchors
    token = circuit.channels("token", width, letters=np.eye(states, width), anchors=np.eye(width)[states:])
    blocks = [token, *(circuit.channels(f"copy {h}", width) for h in range(1, len(keys) + 1))]
    heads = [circuit.attend_to(row, temperature, token, to, add=True) for row, to in zip(keys, blocks[1:])]
    circuit.layer(0).heads = heads
    root, rows = math.sqrt(temperature), [range(h * width, (h + 1) * width) for h in range(1, len(blocks))]
    query: list[Entry] = [(blocks[block], row, root) for block, row in zip(queries, rows)]
    key: list[Entry] = [(block, row, root) for block, row in zip(blocks[1:], rows)]
    if silent:
        position = np.array(circuit.position_channels())
        query.append((position[-1:], 0, -2 * len(keys) * temperature))
        key.append((position[list(silent)], 0, 1.0))
    circuit.layer(1).heads = [Head.copying(token, token, query=query, key=key)]
    return circuit.read_out(token[:states], np.eye(states))
