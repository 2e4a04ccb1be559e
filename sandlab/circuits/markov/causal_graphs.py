"""Reading an unknown kernel off a sequence with a known causal graph, by disentangled transformers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Entries, Head
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.circuits.targets import to_transformer
from sandlab.errors import choice, integer, number, require
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.registry import register

__all__ = ["causal_graph_estimator", "parent_heads_estimator"]


@register("circuits")
def causal_graph_estimator(
    states: int,
    parents: Sequence[int],
    *,
    temperature: float = 60.0,
    silence_roots: bool = True,
    floor: float = 0.0,
    output: str = "probabilities",
) -> DisentangledTransformer:
    """The distribution of what followed s_T in a causal tree: copy the parent, compare, read the counts.

    parents[i] < i, or −1 for a root; the last position holds the query s_T and has no child. With the
    stream [token | position] (d₀ = S + T coordinates):
    layer 1   A[S + i, S + p(i)] = β, a root attends to itself: block 1 holds the parent's token
    layer 2   A[a, d₀ + a] = β: the query's token against the keys' parent tokens
    readout   the token coordinates of what layer 2 copied: #{i : x_{p(i)} = s_T, x_i = ·}/#{i : x_{p(i)} = s_T}

    A root, and the last position, would match whenever its own token equals s_T. `silence_roots` adds
    A[S + T−1, S + i] = −2β in layer 2 for each of them, which makes the output equal the counts exactly; without it
    they are counted. Where nothing matches, the output averages the other positions.

    Source: Nichani, Damian and Lee 2024, construction of §4; the root penalty is ours.
    """
    integer("length", len(parents), low=2)
    for i, parent in enumerate(parents):
        require(-1 <= parent < i, f"parents[{i}]", parent, f"between −1 (a root) and {i - 1}")
    number("temperature", temperature, low=0.0)
    circuit, token = _start(states, len(parents))
    copied = circuit.channels("parent", states)
    keys = [i if parent < 0 else parent for i, parent in enumerate(parents)]
    circuit.layer(0).heads = [circuit.attend_to(keys, temperature, token, copied, add=True)]
    roots = [i for i, parent in enumerate(parents) if parent < 0]
    silent = sorted({*roots, len(parents) - 1}) if silence_roots else []
    return _finish(circuit, [(token, copied)], silent, temperature, output, floor)


@register("circuits")
def parent_heads_estimator(
    states: int,
    parents: Sequence[Sequence[int]],
    *,
    temperature: float = 60.0,
    floor: float = 0.0,
    output: str = "probabilities",
) -> DisentangledTransformer:
    """One first-layer head per parent: the distribution of what followed the present values of several parents.

    parents[i] lists the parents of position i, the same number k everywhere or none; the last entry belongs to the
    token that is predicted, so sequences have len(parents) − 1 tokens. Head h copies the h-th parent's token; at the
    last position it copies the h-th parent of the predicted token instead. Layer 2 compares block h with block h for
    all h: score β · (number of parents that agree). Positions without parents, and the last one (whose own history
    gave way to the query), score −2kβ. Output #{i : parents agree, x_i = ·}/# over the others; an order-k chain is
    parents[i] = (i − 1, …, i − k).

    Source: Nichani, Damian and Lee 2024, §6 (several parents).
    """
    length = len(parents) - 1
    integer("length", length, low=1)
    families = [tuple(family) for family in parents]
    heads = len(families[-1])
    require(heads >= 1, "parents of the predicted token", families[-1], "at least one position")
    for i, family in enumerate(families):
        fits = len(family) in (0, heads) and all(0 <= parent < min(i, length) for parent in family)
        require(fits, f"parents[{i}]", family, f"empty or {heads} earlier positions")
    number("temperature", temperature, low=0.0)
    circuit, token = _start(states, length)
    histories = [*families[: length - 1], families[-1]]
    pairs = []
    for head in range(heads):
        copied = circuit.channels(f"parent {head}", states)
        keys = [family[head] if family else i for i, family in enumerate(histories)]
        circuit.layer(0).heads.append(circuit.attend_to(keys, temperature, token, copied, add=True))
        pairs.append((copied, copied))
    silent = [i for i in range(length) if not families[i] or i == length - 1]
    return _finish(circuit, pairs, silent, temperature, output, floor)


def _start(states: int, length: int) -> tuple[CircuitBuilder, list[int]]:
    """A circuit on the stream [token | position], both one-hot."""
    circuit = CircuitBuilder(states, length)
    token = circuit.channels("token", states, letters=np.eye(states))
    circuit.position_channels()
    return circuit, token


def _finish(
    circuit: CircuitBuilder,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    silent: Sequence[int],
    temperature: float,
    output: str,
    floor: float,
) -> DisentangledTransformer:
    """Layer 2 and the readout: pairs of blocks (query, key) are compared, silent keys lose twice as much as a match."""
    size, position = len(pairs[0][0]), np.array(circuit.position_channels())
    dimensions = [range(i * size, (i + 1) * size) for i in range(len(pairs))]
    last = len(pairs) * size
    query: Entries = [
        *((block, rows, temperature) for (block, _), rows in zip(pairs, dimensions)),
        (position[-1], last, -2 * len(pairs) * temperature),
    ]
    key: Entries = [
        *((block, rows, 1.0) for (_, block), rows in zip(pairs, dimensions)),
        (position[silent], last, 1.0),
    ]
    token, found = range(size), circuit.channels("found", size)
    circuit.layer(1).heads = [Head.copying(token, found, query=query, key=key, add=True)]
    circuit.read_out(found, np.eye(size))
    choice("output", output, ("logits", "probabilities"))
    log_output = number("floor", floor, low=0.0) if output == "probabilities" else None
    return disentangle(to_transformer(circuit, log_output=log_output, read="last"))
