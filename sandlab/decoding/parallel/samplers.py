"""Samplers that draw several sites at once, on any discrete model: block dynamics, k-Gibbs, independent parallel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.decoding.parallel.site_models import LawSites, SiteModel, draw_sites
from sandlab.errors import BadInput, integer, require
from sandlab.worlds.parallel.families import draw_masks
from sandlab.worlds.parallel.finite import MaskLaw

__all__ = [
    "AdaptiveBlockDynamics",
    "BlockDynamics",
    "Checkerboard",
    "IndependentParallel",
    "KGibbs",
    "SiteSampler",
    "Trace",
    "uncertain_sites",
]


@dataclass(frozen=True, eq=False)
class Trace:
    """States of all chains after 0, 1, 2, … steps, which sites were hidden in each, and passes per chain."""

    states: Int[Tensor, "time chain site"]
    hidden: Bool[Tensor, "step chain site"]
    passes: int

    def first(self, inside: Callable[[Tensor], Tensor]) -> Int[Tensor, "chain"]:
        """The first time at which a chain lies in a set, given as a test of states; −1 where it never does."""
        found = torch.stack([torch.as_tensor(inside(states)) for states in self.states])
        return torch.where(found.any(0), found.int().argmax(0), -1)


@dataclass(frozen=True)
class SiteSampler:
    """A Markov chain on states: `step` once, or `run` with everything kept."""

    def choose(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> Bool[Tensor, "chain site"]:
        """The sites that the next step draws again."""
        raise NotImplementedError

    def step(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The next states, and which sites were drawn."""
        hidden = self.choose(model, states, time, rng)
        return model.redraw(states, hidden, rng), hidden

    def run(self, model: SiteModel, start: Int[Tensor, "chain site"], steps: int, *, rng: torch.Generator) -> Trace:
        """So many steps of every chain."""
        integer("steps", steps, low=0)
        require(start.shape[1] == model.sites, "start", tuple(start.shape), f"(chain, {model.sites})")
        before, states, drawn = model.passes, [start], []
        for time in range(steps):
            after, hidden = self.step(model, states[-1], time, rng)
            states.append(after)
            drawn.append(hidden)
        kept = torch.stack(drawn) if drawn else start.new_zeros((0, *start.shape), dtype=torch.bool)
        return Trace(torch.stack(states), kept, model.passes - before)


@dataclass(frozen=True)
class KGibbs(SiteSampler):
    """Draw k uniformly chosen sites again from p(x_K | x_−K) (Li 2024, Definition 4.1.10); k = 1 is Gibbs sampling."""

    k: int = 1

    def __post_init__(self) -> None:
        integer("k", self.k, low=1)

    def choose(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> Tensor:
        require(self.k <= model.sites, "k", self.k, f"at most the {model.sites} sites")
        return draw_masks(len(states), model.sites, self.k, rng=rng)


@dataclass(frozen=True)
class BlockDynamics(SiteSampler):
    """Draw X_K again from p(· | X_−K) with K ~ p_K, any law of masks (Definition 4.1.6)."""

    mask_law: MaskLaw

    def __post_init__(self) -> None:
        require(not self.mask_law.adaptive, "mask_law", "adaptive", "the same for all states",
                "take AdaptiveBlockDynamics")  # fmt: skip

    def choose(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> Tensor:
        masks = torch.as_tensor(self.mask_law.masks, device=states.device)
        weights = torch.as_tensor(self.mask_law.weights, device=states.device)
        return masks[torch.multinomial(weights, len(states), replacement=True, generator=rng)]


@dataclass(frozen=True)
class AdaptiveBlockDynamics(SiteSampler):
    """Draw K ~ p_K(· | X), then X_K from p(· | X_−K, K), which knows how K was chosen (Definition 4.1.8).

    rule   a `MaskLaw` with one distribution per state, for laws that are written out: reversible. Or a function
           (model, states, rng) → hidden sites, for any model: a heuristic, whose stationary law is not the model's
    """

    rule: MaskLaw | Callable[[SiteModel, Tensor, torch.Generator], Tensor]

    def step(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        if not isinstance(self.rule, MaskLaw):
            hidden = self.rule(model, states, rng)
            return model.redraw(states, hidden, rng), hidden
        if not isinstance(model, LawSites):
            raise BadInput("a law of masks that depends on the state needs a model that is written out (LawSites)")
        table = torch.as_tensor(self.rule.given(len(model.law)), device=states.device)
        chosen = torch.multinomial(table[model.index(states)], 1, generator=rng).squeeze(1)
        hidden = torch.as_tensor(self.rule.masks, device=states.device)[chosen]
        return model.redraw(states, hidden, rng, tilt=table[:, chosen].mT), hidden


def uncertain_sites(count: int) -> Callable[[SiteModel, Tensor, torch.Generator], Tensor]:
    """A rule for adaptive masks: hide the `count` sites whose present token the model finds least likely."""

    def rule(model: SiteModel, states: Tensor, rng: torch.Generator) -> Tensor:
        likely = model.site_probs(states).gather(-1, states.unsqueeze(-1)).squeeze(-1)
        return likely.argsort(-1).argsort(-1) < count

    return rule


@dataclass(frozen=True)
class IndependentParallel(SiteSampler):
    """Draw every site at once from p(x_i | x_−i) of the old state (Definition 4.1.11).

    Its stationary law is not that of the model, and it need not be ergodic.
    """

    def step(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        return draw_sites(model.site_probs(states), rng), torch.ones_like(states, dtype=torch.bool)


@dataclass(frozen=True)
class Checkerboard(SiteSampler):
    """Draw the sites of one colour after the other, those of a colour together.

    colours   one number per site; exact where no two sites of a colour depend on each other (a lattice's two colours)
    """

    colours: tuple[int, ...] = (0, 1)

    @classmethod
    def lattice(cls, side: int) -> Checkerboard:
        """The two colours of a square lattice of even side."""
        require(side % 2 == 0, "side", side, "even, so that the periodic lattice has two colours")
        rows, columns = np.indices((side, side))
        return cls(tuple(((rows + columns) % 2).ravel().tolist()))

    def choose(self, model: SiteModel, states: Tensor, time: int, rng: torch.Generator) -> Tensor:
        require(len(self.colours) == model.sites, "colours", len(self.colours), f"one for each of {model.sites} sites")
        colours = torch.tensor(self.colours, device=states.device)
        return (colours == sorted(set(self.colours))[time % len(set(self.colours))]).expand(states.shape)
