"""LEGO: chains of predicates x = g(x′) and their answers, the state-tracking language of chain of thought."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, flag, integer, require
from sandlab.random import rng as make_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.actions import GroupAction, as_action
from sandlab.worlds.reasoning.clauses import SLOTS, ClauseWorld, certain, distinct

__all__ = ["BinaryLego", "FixedLego", "Lego", "track_values"]


def track_values(
    actions: Int[Tensor, "n step"], start: Int[Tensor, "n"], table: Int[Tensor, "g y"], products: Int[Tensor, "g g"]
) -> Int[Tensor, "n value"]:
    """y_0 and y_k = g_k(…g_1(y_0)) for every k, by composing prefixes in log L rounds."""
    prefix, reach = actions, 1
    while reach < actions.shape[1]:
        later = products[prefix[:, reach:], prefix[:, :-reach]]
        prefix, reach = torch.cat([prefix[:, :reach], later], 1), 2 * reach
    return torch.cat([start.unsqueeze(1), table[prefix, start.unsqueeze(1)]], 1)


@register("worlds")
@dataclass(frozen=True)
class Lego(ClauseWorld):
    """D^{L,L′}: L predicate clauses x_k = g_k(x_{k−1}), then answers x_0 = y_0, x_1 = y_1, …; predict the next answer.

    action          "C6", "S5", "S3 regular", … (`named_action`), or a `GroupAction`
    variables       |X|: x_0 … x_L are distinct, uniform without replacement
    length          L: number of predicates
    num_answers     answers that are predicted, from the first on (default: all L); those before each are given
    only_last       count the last of these steps only: the loss Loss^{L,ℓ} with ℓ = num_answers
    permuted        predicate clauses in random order
    unrelated       predicates of another chain, about variables that are not asked for, after those of the chain
    predict_blanks  predict all five slots instead of the fourth and the fifth

    Tokens: variables, then actions, then values, then the blank. Predicate k is (x_k, g_k, x_{k−1}, _, _), answer k is
    (_, _, _, x_k, y_k). y_0 and g_1 … g_L are uniform. truth: "variables", "actions", "values", and "place", the clause
    in which predicate k stands.

    Source: Huang et al. 2025, Definitions 2.2, 3.1, Assumption 3.2.
    """

    action: str | GroupAction = "C6"
    variables: int = 24
    length: int = 5
    num_answers: int | None = None
    only_last: bool = False
    permuted: bool = False
    unrelated: int = 0
    predict_blanks: bool = False

    def __post_init__(self) -> None:
        as_action(self.action)
        integer("length", self.length, low=1)
        integer("unrelated", self.unrelated, low=0)
        integer("num_answers", self.predicted_steps, low=1, high=self.length)
        for name in ("only_last", "permuted", "predict_blanks"):
            flag(name, getattr(self, name))
        hint = f"a chain of {self.length} needs that many distinct variables"
        integer("variables", self.variables, low=self._needed, hint=hint)

    @property
    def _needed(self) -> int:
        return self.length + 1 + (self.unrelated + 1 if self.unrelated else 0)

    @property
    def group_action(self) -> GroupAction:
        return as_action(self.action)

    @property
    def predicted_steps(self) -> int:
        return self.length if self.num_answers is None else self.num_answers

    @property
    def predicates(self) -> int:
        """Number of predicate clauses."""
        return self.length + self.unrelated

    @property
    def first_action(self) -> int:
        """Token of the first action."""
        return self.variables

    @property
    def first_value(self) -> int:
        """Token of the first value."""
        return self.variables + self.group_action.elements

    @property
    def vocab(self) -> int:
        return self.first_value + self.group_action.values + 1

    @property
    def letters(self) -> list[str]:
        action = self.group_action
        names = [f"x{i}" for i in range(self.variables)] + [f"g{i}" for i in range(action.elements)]
        return [*names, *map(str, range(action.values)), "_"]

    def fresh(self, **changes: Any) -> Lego:
        """The world of fresh chains with the same parameters but for the changed ones."""
        return Lego(**{**{each.name: getattr(self, each.name) for each in fields(Lego)}, **changes})

    def tables(self, device: torch.device | str) -> tuple[Tensor, Tensor]:
        """The action's table and products on a device."""
        known = self._tables
        if str(device) not in known:
            found = (self.group_action.array, self.group_action.group.products)
            known[str(device)] = tuple(torch.as_tensor(each, device=device) for each in found)
        return known[str(device)]  # type: ignore[return-value]

    @cached_property
    def _tables(self) -> dict[str, tuple[Tensor, ...]]:
        return {}

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        action, device = self.group_action, rng.device
        names = distinct(n, self._needed, self.variables, rng)
        actions = torch.randint(action.elements, (n, self.predicates), generator=rng, device=device)
        start = torch.randint(action.values, (n,), generator=rng, device=device)
        values = track_values(actions[:, : self.length], start, *self.tables(device))
        order = distinct(n, self.predicates, self.predicates, rng) if self.permuted else None
        return self.compose(names, actions, values, order)

    def compose(
        self, names: Int[Tensor, "n name"], actions: Int[Tensor, "n predicate"], values: Int[Tensor, "n value"],
        order: Int[Tensor, "n predicate"] | None = None,
    ) -> Batch:  # fmt: skip
        """The batch of given chains; predicate clause i of the text is predicate order[i]."""
        n, chain, device = len(names), self.length + 1, names.device
        produced = torch.cat([names[:, 1:chain], names[:, chain + 1 :]], 1)
        consumed = torch.cat([names[:, : chain - 1], names[:, chain:-1] if self.unrelated else names[:, :0]], 1)
        tokens = (produced, actions + self.first_action, consumed)
        place = torch.arange(self.predicates, device=device).expand(n, -1)
        if order is not None:
            tokens = tuple(each.gather(1, order) for each in tokens)  # type: ignore[assignment]
            place = order.argsort(-1)
        slots = dict(zip(("slot1", "slot2", "slot3"), tokens))
        predicates = self.clause(n, self.predicates, device, **slots)
        answers = self.clause(n, chain, device, slot4=names[:, :chain], slot5=values + self.first_value)
        steps = self.predicted_steps
        clauses = torch.cat([predicates, answers[:, :steps]], 1)
        targets = answers[:, 1 : steps + 1, 0 if self.predict_blanks else 3 :]
        mask = torch.ones_like(targets, dtype=torch.bool)
        mask[:, : steps - 1] &= not self.only_last
        truth = {"variables": names[:, :chain], "actions": actions[:, : self.length], "values": values}
        return self.batch(clauses, targets, mask, {**truth, "place": place[:, : self.length]})

    def oracle(self, batch: Batch) -> Float[Tensor, "example target vocab"]:
        """Certain: the predicate that consumes the last answered variable tells the next variable and its value."""
        clauses = batch.inputs.view(len(batch), -1, SLOTS)
        predicates, answers = clauses[:, : self.predicates], clauses[:, self.predicates :]
        found = (answers[:, :, None, 3] == predicates[:, None, :, 2]).long().argmax(-1)
        used = predicates.gather(1, found.unsqueeze(-1).expand(-1, -1, SLOTS))
        table, _ = self.tables(batch.inputs.device)
        after = table[used[..., 1] - self.first_action, answers[..., 4] - self.first_value] + self.first_value
        last = self.clause(len(batch), answers.shape[1], batch.inputs.device, slot4=used[..., 0], slot5=after)
        return certain(last[..., 0 if self.predict_blanks else 3 :].flatten(1), self.vocab)

    def accepts(self, tokens: Tensor) -> bool | Tensor:
        """Whether the clauses are well formed and all answers of a chain agree with its predicates (Definition 2.2)."""
        if tokens.ndim == 2:
            return torch.tensor([bool(self.accepts(row)) for row in tokens])
        if len(tokens) % SLOTS:
            return False
        predicates: dict[int, tuple[int, int]] = {}
        answers: dict[int, int] = {}
        for clause in tokens.view(-1, SLOTS).tolist():
            if not self._read(clause, predicates, answers):
                return False
        return all(self._agrees(variable, predicates, answers) for variable in answers)

    def _read(self, clause: list[int], predicates: dict[int, tuple[int, int]], answers: dict[int, int]) -> bool:
        """Take in a clause; False when it is malformed or contradicts an earlier one."""
        x, g, before, answered, value = clause
        first, after = self.first_action, self.first_value
        if (answered, value) == (self.blank, self.blank):
            formed = x < first and first <= g < after and before < first and x != before
            known, given = predicates.get(x), (g - first, before)
            predicates[x] = given
            return formed and known in (None, given)
        formed = (x, g, before) == (self.blank,) * 3 and answered < first and after <= value < self.blank
        seen = answers.get(answered)
        answers[answered] = value - after
        return formed and seen in (None, value - after)

    def _agrees(self, variable: int, predicates: dict[int, tuple[int, int]], answers: dict[int, int]) -> bool:
        """Follow the chain back from an answered variable: every answered ancestor implies its value."""
        total, table, at = self.group_action.identity, self.group_action.array, variable
        for _ in range(len(predicates)):
            if at not in predicates:
                return True
            g, at = predicates[at]
            total = self.group_action.compose(total, g)
            if at in answers and int(table[total, answers[at]]) != answers[variable]:
                return False
        return at not in predicates  # a cycle of predicates is no chain

    def render(self, tokens: Tensor) -> str:
        """ "x7 = g12(x3); x3 = 1"."""
        return "; ".join(map(self._phrase, tokens.view(-1, SLOTS).tolist()))

    def _phrase(self, clause: list[int]) -> str:
        x, g, before, answered, value = (self._names[token] for token in clause)
        return f"{x} = {g}({before})" if value == "_" else f"{answered} = {value}"


@register("worlds")
@dataclass(frozen=True)
class FixedLego(Lego):
    """A fixed set of chains, drawn once from a seed, from which batches are drawn with replacement.

    chains, seed   number of chains, and the seed of the set
    """

    chains: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("chains", self.chains, low=1)
        integer("seed", self.seed, low=0)

    @cached_property
    def _pools(self) -> dict[str, Batch]:
        return {}

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device = str(rng.device)
        if device not in self._pools:
            # Drawn on the CPU: the set is the same on every device.
            self._pools[device] = super().sample(self.chains, rng=make_rng(self.seed, "chains")).to(device)
        return self._pools[device][torch.randint(self.chains, (n,), generator=rng, device=rng.device)]


@register("worlds")
@dataclass(frozen=True)
class BinaryLego(Lego):
    """The original LEGO with signs: b = −a, c = +b, …, a = +1: the action of C_2.

    Source: Zhang et al. 2022; Huang et al. 2025, section 2.2.
    """

    action: str | GroupAction = "C2"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.group_action.elements == 2, "action", self.action, "the group of two elements, 'C2'")

    def _phrase(self, clause: list[int]) -> str:
        x, g, before, answered, value = clause
        signs = "+-"
        if value == self.blank:
            return f"{_letter(x)}={signs[g - self.first_action]}{_letter(before)}"
        return f"{_letter(answered)}={signs[value - self.first_value]}1"

    def parse(self, text: str) -> Int[Tensor, "token"]:
        """Tokens of a text such as "b=-a; c=+b; a=+1"."""
        clauses = [self._clause(part.strip().replace(" ", "")) for part in text.split(";") if part.strip()]
        return torch.tensor(clauses).flatten()

    def _clause(self, part: str) -> list[int]:
        left, _, right = part.partition("=")
        if not right or right[0] not in "+-":
            raise BadInput(f"a clause looks like b=-a or a=+1, got {part!r}")
        sign, rest, blank = "+-".index(right[0]), right[1:], self.blank
        if rest == "1":
            return [blank, blank, blank, _number(left), self.first_value + sign]
        return [_number(left), self.first_action + sign, _number(rest), blank, blank]


def _letter(token: int) -> str:
    return chr(ord("a") + token) if token < 26 else f"v{token}"


def _number(name: str) -> int:
    return int(name[1:]) if len(name) > 1 else ord(name) - ord("a")
