"""Rejection that never makes the same mistake twice: the model given the language, exactly, at a bearable price."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.session import Session, Status
from sandlab.decoding.decoders.base import draw
from sandlab.decoding.decoders.rejection import Rejection
from sandlab.registry import register

__all__ = ["AdaptiveRejection"]


@dataclass(eq=False)
class Node:
    """A prefix that was met: its children of positive value, and how much of each may still be alive.

    letters   the children that the verifier allows
    probs     π(a|y) of these; logprobs: under the generator itself
    alive     w(y∘a): at least the probability, from y∘a on, of ending in the language; 1 where nothing is known
    """

    letters: Int[Tensor, "child"]
    probs: Float[Tensor, "child"]
    logprobs: Float[Tensor, "child"]
    alive: Float[Tensor, "child"]
    parent: Node | None = None
    place: int = 0

    @property
    def weight(self) -> float:
        """w(y) = Σ_a π(a|y)·w(y∘a)."""
        return float((self.probs * self.alive).sum())

    def tell_parents(self) -> None:
        """Hand the new weight up to the root."""
        node = self
        while node.parent is not None:
            node.parent.alive[node.place] = node.weight
            node = node.parent


@register("decoders")
@dataclass(frozen=True)
class AdaptiveRejection(Rejection):
    """Rejection sampling that remembers what it has learnt is impossible: exactly p(s) ∝ 1[s ∈ A] p(s).

    With w(y) ≥ P(a word of A | y), 1 minus the probability of all refused continuations of y that were met so far, a
    try goes from the root to a child a with probability π(a|y)·w(y∘a)/w(y), and on arriving at a prefix whose weight
    turns out to be w' instead of w it is thrown away with probability 1 − w'/w. A word s is then written with
    probability p(s)/w(root) whatever was learnt on the way, so what comes out has the model's distribution given the
    language, as with plain rejection; but no dead end is entered twice, and no prefix computed twice. Strings with the
    same prompt learn together: many samples of one prompt cost little more than one.
    After grammar-aligned decoding (Park et al. 2024) and constrained adaptive rejection sampling (Parys et al. 2025).

    max_tries   a string that was thrown away so many times fails
    """

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        trees = _Trees(self, session)
        expected = torch.ones(len(session.lengths), dtype=torch.float64)
        while len(rows := session.running()):
            for node, members in trees.visit(rows).items():
                self._step(session, node, members, expected)
            rows = rows[session.status[rows] == Status.RUNNING]
            written = rows[session.lengths[rows] > session.prompt_lengths[rows]]
            session.finish(written[session.complete(written)])

    def _step(self, session: Session, node: Node, members: Tensor, expected: Tensor) -> None:
        """Move the rows at one prefix on to a child, or begin them anew."""
        weights = node.probs * node.alive
        total = float(weights.sum())
        at_root = session.lengths[members] == session.prompt_lengths[members]
        if total <= 0 and node.parent is None:
            session.finish(members, Status.FAILED)
            return
        through = at_root | (session.uniform(members) * expected[members].to(members.device) < total)
        if total <= 0:
            through &= False
        self.start_again(session, members[~through])
        goes = members[through]
        if not len(goes):
            return
        picked = draw(weights.expand(len(goes), -1), session.uniform(goes))
        expected[goes.cpu()] = node.alive[picked].cpu()
        session.append(goes, node.letters[picked], node.logprobs[picked])


class _Trees:
    """The prefixes that were met, one tree for each prompt, number of tokens to write and end of a prompt to heal."""

    def __init__(self, decoder: AdaptiveRejection, session: Session) -> None:
        self.decoder, self.session = decoder, session
        self.nodes: dict[tuple[int, ...], Node] = {}
        # Prompts that differ in their healed ends only begin with the same tokens, and may not learn together.
        heads: list[str] = getattr(session.verifier, "heads", None) or [""] * len(session.lengths)
        order = {head: number for number, head in enumerate(dict.fromkeys(heads))}
        self.heads = [order[head] for head in heads]

    def visit(self, rows: Tensor) -> dict[Node, Tensor]:
        """The nodes at which these rows stand; what is new is asked about once."""
        members: dict[tuple[int, ...], list[int]] = defaultdict(list)
        tokens, lengths = self.session.tokens[rows].tolist(), self.session.lengths[rows].tolist()
        frames = zip(self.session.limits[rows].tolist(), self.session.prompt_lengths[rows].tolist())
        for row, string, cut, frame in zip(rows.tolist(), tokens, lengths, frames):
            members[(self.heads[row], *frame, *string[:cut])].append(row)
        fresh = {key: None for key in members if key not in self.nodes}
        if fresh:
            self._meet(list(fresh), torch.tensor([members[key][0] for key in fresh], device=rows.device))
        old = [row for key, some in members.items() for row in (some[1:] if key in fresh else some)]
        self.session.counters["remembered"][torch.tensor(old, dtype=torch.long, device=rows.device)] += 1
        return {self.nodes[key]: torch.tensor(some, device=rows.device) for key, some in members.items()}

    def _meet(self, keys: list[tuple[int, ...]], rows: Tensor) -> None:
        logprobs, values = self.session.next_log_probs(rows), self.session.child_values(rows)
        probs = self.decoder.sharpened(self.session, rows, logprobs).exp()
        for key, law, own, value in zip(keys, probs, logprobs, values):
            letters = (value > 0).nonzero().squeeze(1)
            node = Node(letters, law[letters], own[letters].double(), torch.ones_like(law[letters]))
            parent = self.nodes.get(key[:-1])
            if parent is not None:
                node.parent, node.place = parent, int((parent.letters == key[-1]).nonzero()[0, 0])
            self.nodes[key] = node
            node.tell_parents()
