"""Boolean circuits as clauses: evaluate them at once, or gate by gate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import flag, integer
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.clauses import SLOTS, ClauseWorld, certain

__all__ = ["GATES", "CircuitEvaluation"]

GATES = {"and": (0, 0, 0, 1), "or": (0, 1, 1, 1), "xor": (0, 1, 1, 0), "nand": (1, 1, 1, 0)}
"""Gate → its value for the inputs 00, 01, 10, 11."""


@register("worlds")
@dataclass(frozen=True)
class CircuitEvaluation(ClauseWorld):
    """Evaluate a random Boolean circuit of M gates in topological order, with or without writing the values down.

    inputs    number of input bits
    gates     M
    thought   True: after the circuit, every gate's value is predicted in order (chain of thought); False: the last
              gate's value is predicted at once
    chained   each gate reads the gate before it (and one earlier node), so that the circuit is M gates deep

    Clauses: gate k is (node, type, in₁, in₂, _); an input bit and a written value are (_, _, _, node, value). Tokens:
    nodes, gate types, the bits 0 and 1, a question mark, the blank. The clause (_, _, _, last node, ?) asks for the
    output at once. truth: "values" of all nodes.

    Source: Feng et al. 2023; Merrill and Sabharwal 2024; Li et al. 2024.
    """

    inputs: int = 4
    gates: int = 8
    thought: bool = True
    chained: bool = True

    def __post_init__(self) -> None:
        integer("inputs", self.inputs, low=2)
        integer("gates", self.gates, low=1)
        flag("thought", self.thought)
        flag("chained", self.chained)

    @property
    def nodes(self) -> int:
        return self.inputs + self.gates

    @property
    def first_value(self) -> int:
        """Token of the bit 0."""
        return self.nodes + len(GATES)

    @property
    def question(self) -> int:
        return self.first_value + 2

    @property
    def vocab(self) -> int:
        return self.question + 2

    @property
    def letters(self) -> list[str]:
        return [*(f"n{i}" for i in range(self.nodes)), *GATES, "0", "1", "?", "_"]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        node = torch.arange(self.inputs, self.nodes, device=rng.device)
        kinds = torch.randint(len(GATES), (n, self.gates), generator=rng, device=rng.device)
        chosen = torch.rand(n, self.gates, 2, generator=rng, device=rng.device)
        wires = (chosen * node.view(-1, 1)).long()
        if self.chained:
            wires[:, 1:, 0] = node[1:] - 1
        bits = torch.randint(2, (n, self.inputs), generator=rng, device=rng.device)
        return self.compose(kinds, wires, self.evaluate(kinds, wires, bits))

    def evaluate(
        self, kinds: Int[Tensor, "n gate"], wires: Int[Tensor, "n gate wire"], bits: Int[Tensor, "n bit"]
    ) -> Int[Tensor, "n node"]:
        """The value of every node; gates one after another, all examples at once."""
        table = self._table(bits.device)
        values = torch.cat([bits, torch.zeros_like(kinds)], 1)
        for gate in range(self.gates):
            first, second = values.gather(1, wires[:, gate]).unbind(1)
            values[:, self.inputs + gate] = table[kinds[:, gate], torch.add(second, first, alpha=2)]
        return values

    def _table(self, device: torch.device) -> Int[Tensor, "kind case"]:
        """The gates' values on a device, sent there once: sampling then never waits for the host."""
        if device not in self._tables:
            self._tables[device] = torch.tensor(list(GATES.values()), device=device)
        return self._tables[device]

    @cached_property
    def _tables(self) -> dict[torch.device, Tensor]:
        return {}

    def compose(
        self, kinds: Int[Tensor, "n gate"], wires: Int[Tensor, "n gate wire"], values: Int[Tensor, "n node"]
    ) -> Batch:
        """The batch of given circuits whose nodes have the given values."""
        n, device = len(kinds), kinds.device
        node = torch.arange(self.nodes, device=device)
        slots = {
            "slot1": node[self.inputs :],
            "slot2": kinds + self.nodes,
            "slot3": wires[..., 0],
            "slot4": wires[..., 1],
        }
        gates = self.clause(n, self.gates, device, **slots)
        written = self.clause(n, self.nodes, device, slot4=node, slot5=values + self.first_value)
        if self.thought:
            clauses = torch.cat([gates, written[:, :-1]], 1)
            targets = written[:, self.inputs :, 3:]
            return self.batch(clauses, targets, torch.ones_like(targets, dtype=torch.bool), {"values": values})
        asked = self.clause(n, 1, device, slot4=node[-1:], slot5=torch.full((n, 1), self.question, device=device))
        targets = written[:, -1:, 3:]
        mask = torch.arange(2, device=device).bool().expand(n, 1, 2)
        return self.batch(torch.cat([gates, written[:, : self.inputs], asked], 1), targets, mask, {"values": values})

    def oracle(self, batch: Batch) -> Float[Tensor, "example target vocab"]:
        """Certain: the circuit that the clauses describe, evaluated on the written bits."""
        clauses = batch.inputs.view(len(batch), -1, SLOTS)
        gates, bits = clauses[:, : self.gates], clauses[:, self.gates : self.gates + self.inputs, 4]
        values = self.evaluate(gates[..., 1] - self.nodes, gates[..., 2:4], bits - self.first_value)
        node = torch.arange(self.nodes, device=values.device).expand(len(batch), -1)
        answers = torch.stack([node, values + self.first_value], -1)
        return certain(answers[:, self.inputs if self.thought else -1 :].flatten(1), self.vocab)
