"""Reading an unknown kernel off a sequence with a known causal graph, by disentangled transformers."""

from __future__ import annotations

from collections.abc import Sequence

from sandlab.circuits._matching import matching_circuit
from sandlab.circuits.builder import CircuitBuilder
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

    A root, and the last position, would match whenever its token equals s_T. `silence_roots` adds
    A[S + T−1, S + i] = −2β in layer 2 for each of them, which makes the output equal the counts exactly; without it
    they are counted. Where nothing matches, the output averages the other positions.

    Source: Nichani, Damian and Lee 2024, construction of §4; the root penalty is ours.
    """
    integer("length", len(parents), low=2)
    for i, parent in enumerate(parents):
        require(-1 <= parent < i, f"parents[{i}]", parent, f"between −1 (a root) and {i - 1}")
    number("temperature", temperature, low=0.0)
    keys = [i if parent < 0 else parent for i, parent in enumerate(parents)]
    silent = {len(parents) - 1, *(i for i, parent in enumerate(parents) if parent < 0)}
    circuit = matching_circuit(
        states, len(parents), [keys], [0], temperature, silent=sorted(silent) if silence_roots else ()
    )
    return _disentangled(circuit, output, floor)


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
    all h: score β · (number of parents that agree). Positions without parents, and the last one (whose history
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
    histories = [*families[: length - 1], families[-1]]
    keys = [[family[h] if family else i for i, family in enumerate(histories)] for h in range(heads)]
    silent = [i for i in range(length) if not families[i] or i == length - 1]
    circuit = matching_circuit(states, length, keys, range(1, heads + 1), temperature, silent=silent)
    return _disentangled(circuit, output, floor)


def _disentangled(circuit: CircuitBuilder, output: str, floor: float) -> DisentangledTransformer:
    choice("output", output, ("logits", "probabilities"))
    log_output = number("floor", floor, low=0.0) if output == "probabilities" else None
    return disentangle(to_transformer(circuit, residual=(True, False), log_output=log_output, read="last"))
