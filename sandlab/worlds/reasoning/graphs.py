"""Graphs as clauses: connectivity from an edge list, and multi-hop questions in context."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import flag, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.clauses import SLOTS, ClauseWorld, certain, distinct

__all__ = ["GraphConnectivity", "MultiHopReasoning", "reachable"]


def reachable(adjacency: Bool[Tensor, "n from to"]) -> Bool[Tensor, "n from to"]:
    """Transitive closure, every vertex reaching itself: ⌈log₂ n⌉ Boolean squarings of I ∨ A."""
    size = adjacency.shape[-1]
    reached = adjacency | torch.eye(size, dtype=torch.bool, device=adjacency.device)
    for _ in range(max(1, (size - 1).bit_length())):
        reached = (reached.float() @ reached.float()) > 0
    return reached


@register("worlds")
@dataclass(frozen=True)
class GraphConnectivity(ClauseWorld):
    """Is t reachable from s? An undirected graph as edge clauses in random order, then the question (s, t).

    vertices   n
    thought    True: the vertices found from s are written first, one per clause, then the answer
    linked     probability that s and t lie on the same path

    The vertices are split at random into two paths of n/2; the edges are those of the paths (in random order, each in a
    random direction), so that distances are long and no local statistic tells the answer; s is an end of a path and t
    the other end, or an end of the other path. With a chain of thought the path of s is walked: each clause
    (_, t, _, vertex, go) names the next vertex, and after the other end comes (_, _, _, t, yes/no). Clauses: edge
    (u, _, v, _, _), question (_, t, _, s, go). Tokens: vertices, no, yes, go, the blank. truth: "walk",
    "target", "linked".

    Source: Merrill and Sabharwal 2024, "A little depth goes a long way".
    """

    vertices: int = 8
    thought: bool = False
    linked: float = 0.5

    def __post_init__(self) -> None:
        integer("vertices", self.vertices, low=4)
        require(self.vertices % 2 == 0, "vertices", self.vertices, "even: the graph is two paths of half of them")
        flag("thought", self.thought)
        number("linked", self.linked, low=0.0, high=1.0)

    @property
    def no(self) -> int:
        return self.vertices

    @property
    def yes(self) -> int:
        return self.vertices + 1

    @property
    def go(self) -> int:
        return self.vertices + 2

    @property
    def vocab(self) -> int:
        return self.vertices + 4

    @property
    def letters(self) -> list[str]:
        return [*(f"v{i}" for i in range(self.vertices)), "no", "yes", "go", "_"]

    @property
    def edges(self) -> int:
        return self.vertices - 2

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device, half = rng.device, self.vertices // 2
        order = distinct(n, self.vertices, self.vertices, rng).view(n, 2, half)
        ends = torch.stack([order[..., :-1], order[..., 1:]], -1).flatten(1, 2)
        turned = torch.rand(n, self.edges, 1, generator=rng, device=device) < 0.5
        ends = torch.where(turned, ends.flip(-1), ends)
        shuffled = distinct(n, self.edges, self.edges, rng)
        ends = ends.gather(1, shuffled.unsqueeze(-1).expand(-1, -1, 2))
        linked = torch.rand(n, generator=rng, device=device) < self.linked
        target = torch.where(linked, order[:, 0, -1], order[:, 1, -1])
        return self.compose(ends, order[:, 0], target, linked)

    def compose(
        self, ends: Int[Tensor, "n edge 2"], walk: Int[Tensor, "n step"], target: Int[Tensor, "n"],
        linked: Bool[Tensor, "n"],
    ) -> Batch:  # fmt: skip
        """The batch of given edges, the walk from s along its path, and the target."""
        n, device = len(ends), ends.device
        edges = self.clause(n, self.edges, device, slot1=ends[..., 0], slot3=ends[..., 1])
        go = torch.full((n, 1), self.go, device=device)
        said = torch.where(linked, self.yes, self.no).unsqueeze(1)
        asked = target.unsqueeze(1)
        question = self.clause(n, 1, device, slot2=asked, slot4=walk[:, :1], slot5=go)
        answer = self.clause(n, 1, device, slot4=asked, slot5=said)
        truth = {"linked": linked, "walk": walk, "target": target}
        if not self.thought:
            mask = torch.arange(2, device=device).bool().expand(n, 1, 2)
            return self.batch(torch.cat([edges, question], 1), answer[..., 3:], mask, truth)
        steps = self.clause(n, walk.shape[1] - 1, device, slot2=asked, slot4=walk[:, 1:], slot5=go)
        targets = torch.cat([steps, answer], 1)[..., 3:]
        clauses = torch.cat([edges, question, steps], 1)
        return self.batch(clauses, targets, torch.ones_like(targets, dtype=torch.bool), truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example target vocab"]:
        """Certain: the closure of the written edges, and the walk along them."""
        clauses = batch.inputs.view(len(batch), -1, SLOTS)
        adjacency = self.adjacency(clauses)
        question = clauses[:, self.edges]
        row, target = torch.arange(len(batch), device=clauses.device), question[:, 1]
        linked = reachable(adjacency)[row, question[:, 3], target]
        said = torch.stack([target, torch.where(linked, self.yes, self.no)], -1).unsqueeze(1)
        if not self.thought:
            return certain(said.flatten(1), self.vocab)
        at, before, steps = question[:, 3], torch.full_like(target, -1), []
        for _ in range(self.vertices // 2 - 1):
            near = adjacency[row, at].scatter(1, before.clamp(min=0).unsqueeze(1), False)
            near = torch.where((before < 0).unsqueeze(1), adjacency[row, at], near)
            before, at = at, near.long().argmax(-1)
            steps.append(torch.stack([at, torch.full_like(at, self.go)], -1))
        return certain(torch.cat([torch.stack(steps, 1), said], 1).flatten(1), self.vocab)

    def adjacency(self, clauses: Int[Tensor, "n clause slot"]) -> Bool[Tensor, "n from to"]:
        """The graph that the edge clauses describe."""
        found = torch.zeros(len(clauses), self.vertices, self.vertices, dtype=torch.bool, device=clauses.device)
        row = torch.arange(len(clauses), device=clauses.device).unsqueeze(1)
        first, second = clauses[:, : self.edges, 0], clauses[:, : self.edges, 2]
        found[row, first, second] = True
        found[row, second, first] = True
        return found


@register("worlds")
@dataclass(frozen=True)
class MultiHopReasoning(ClauseWorld):
    """Premises a → b, b → c, … in random order among distractor chains; asked for a, answer where `hops` steps lead.

    things       number of entities
    hops         length of every chain (2: the two-hop task)
    distractors  further chains of the same length, about other entities
    thought      True: the entities on the way are predicted one by one; False: the last one at once

    Premise (to, _, from, _, _), question (_, _, _, a, ?) and, with a chain of thought, (_, _, _, entity, ?). Tokens:
    entities, the question mark, the blank. truth: "chain".

    Source: Wang et al. 2025; Guo et al. 2025 on two-hop reasoning in context.
    """

    things: int = 12
    hops: int = 2
    distractors: int = 2
    thought: bool = False

    def __post_init__(self) -> None:
        integer("hops", self.hops, low=1)
        integer("distractors", self.distractors, low=0)
        flag("thought", self.thought)
        needed = (self.distractors + 1) * (self.hops + 1)
        integer("things", self.things, low=needed, hint=f"{self.distractors + 1} chains need {needed} entities")

    @property
    def question(self) -> int:
        return self.things

    @property
    def vocab(self) -> int:
        return self.things + 2

    @property
    def letters(self) -> list[str]:
        return [*(f"e{i}" for i in range(self.things)), "?", "_"]

    @property
    def premises(self) -> int:
        return (self.distractors + 1) * self.hops

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        chains = (self.distractors + 1, self.hops + 1)
        names = distinct(n, chains[0] * chains[1], self.things, rng).view(n, *chains)
        pairs = torch.stack([names[..., 1:], names[..., :-1]], -1).flatten(1, 2)
        shuffled = distinct(n, self.premises, self.premises, rng)
        pairs = pairs.gather(1, shuffled.unsqueeze(-1).expand(-1, -1, 2))
        premises = self.clause(n, self.premises, rng.device, slot1=pairs[..., 0], slot3=pairs[..., 1])
        return self._asked(premises, names[:, 0])

    def _asked(self, premises: Int[Tensor, "n premise slot"], chain: Int[Tensor, "n thing"]) -> Batch:
        n, mark = len(chain), torch.full((len(chain), self.hops), self.question, device=chain.device)
        shown = self.hops if self.thought else 1
        clauses = self.clause(n, shown, chain.device, slot4=chain[:, :shown], slot5=mark[:, :shown])
        answers = chain[:, 1:] if self.thought else chain[:, -1:]
        targets = torch.stack([answers, mark[:, :shown]], -1)
        mask = (torch.arange(2, device=chain.device) == 0).expand(targets.shape)
        return self.batch(torch.cat([premises, clauses], 1), targets, mask, {"chain": chain})

    def oracle(self, batch: Batch) -> Float[Tensor, "example target vocab"]:
        """Certain: the premises, followed from the last named entity."""
        clauses = batch.inputs.view(len(batch), -1, SLOTS)
        premises, asked = clauses[:, : self.premises], clauses[:, self.premises :, 3]
        for _ in range(1 if self.thought else self.hops):
            found = (asked.unsqueeze(-1) == premises[:, None, :, 2]).long().argmax(-1)
            asked = premises[..., 0].gather(1, found)
        answers = torch.stack([asked, torch.full_like(asked, self.question)], -1)
        return certain(answers.flatten(1), self.vocab)
