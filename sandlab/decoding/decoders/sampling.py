"""Sampling without a verifier: greedy, temperature, nucleus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sandlab.decoding._session.session import Session
from sandlab.decoding.decoders.base import Decoder
from sandlab.registry import register

__all__ = ["Greedy", "Nucleus", "Sampling", "Temperature"]


@dataclass(frozen=True)
class Sampling(Decoder):
    """Token by token from the sharpened distribution: one query per token."""

    law: ClassVar[str] = "the model"

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        while len(rows := session.running()):
            self.extend(session, rows)
            session.finish(rows[session.complete(rows)])


@register("decoders")
@dataclass(frozen=True)
class Greedy(Sampling):
    """The most probable token at each position.

    One query a token, no randomness: the string need not be the most probable one.
    """

    temperature: float = 0.0


@register("decoders")
@dataclass(frozen=True)
class Temperature(Sampling):
    """Each token from p^(1/T)/Z.

    T = 1 samples the model itself, T → 0 becomes greedy, T > 1 flattens the distribution. One query a token; the
    string's distribution is the product of these conditionals, not p(s)^(1/T)/Z.
    """

    temperature: float = 1.0


@register("decoders")
@dataclass(frozen=True)
class Nucleus(Sampling):
    """Each token from the smallest set of most probable ones whose probability exceeds top_p (Holtzman et al. 2020).

    The token that crosses the threshold stays, the rest is dropped and the distribution renormalised; a temperature is
    applied first. top_p = 1 samples the model itself, top_p = 0 is greedy. One query a token.
    """

    top_p: float = 0.9
