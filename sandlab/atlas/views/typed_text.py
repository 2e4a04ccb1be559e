"""What a world knows about a typed text: the hidden states under its letters, membership, the first impossible letter.

Worlds hide different things and read them off in different ways; each kind has its reader here, worlds without
hidden states (or whose states cannot be told from the letters) have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandlab.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

    from sandlab.worlds.base import World
    from sandlab.worlds.flip_flop.language import FlipFlop
    from sandlab.worlds.hmm.models import HMM

__all__ = ["NoLaw", "by_letter", "hidden_states", "laws_of", "membership"]


class NoLaw(Exception):
    """Why the oracle says nothing about a text."""


def hidden_states(made: World, tokens: Tensor) -> dict[str, list[int] | list[str]]:
    """Name of a hidden quantity → its value under every letter.

    An automaton's state after the letter, the depth of a stack, the content of a flip-flop's cell ("–" before the first
    write), the likeliest state of a hidden Markov model given the letters so far, the carry into a place.
    """
    from sandlab.worlds.automata.addition import Addition, carries
    from sandlab.worlds.automata.machine import Automaton
    from sandlab.worlds.dyck.language import Dyck
    from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction
    from sandlab.worlds.hmm.models import HMM

    rows = tokens.unsqueeze(0)
    if isinstance(made, Automaton):
        return {"state": [made.names_of_states[state] for state in made.run(rows)[0].tolist()]}
    if isinstance(made, Dyck):
        return {"depth": made.scan(rows).depth[0].tolist()}
    if isinstance(made, FlipFlop):
        return {"stored": _cell(made, tokens.tolist())}
    if isinstance(made, FlipFlopTransduction):
        return {"state": made.label(rows).truth["state"][0].tolist()}
    if isinstance(made, HMM):
        return {"likeliest state": _filtered(made, tokens)}
    if isinstance(made, Addition):
        out = carries(rows // made.base + rows % made.base, made.base)[0].tolist()
        return {"carry": [0, *out[:-1]]}
    return {}


def _cell(made: FlipFlop, tokens: list[int]) -> list[str]:
    """Content of the cell after each letter: a symbol after w, or a coarse letter that writes, changes it."""
    content, found, symbols = "–", [], made.symbols
    for place, token in enumerate(tokens):
        if made.tokens == "coarse":
            content = str(token) if token < symbols else content
        elif place % 2 and tokens[place - 1] == 0:
            content = made.letters[token]
        found.append(content)
    return found


def _filtered(made: HMM, tokens: Tensor) -> list[int]:
    """argmax_h P(h_t = h | x_1 … x_t), the forward recursion from the uniform law."""
    import numpy as np

    belief, found = np.full(made.hidden, 1.0 / made.hidden), []
    for place, token in enumerate(tokens.tolist()):
        belief = (belief if place == 0 else made.T @ belief) * made.O[token]
        belief = belief / max(belief.sum(), 1e-300)
        found.append(int(belief.argmax()))
    return found


def membership(made: Any, tokens: Tensor) -> str:
    """ "word" of the world's language, "beginning" of one, "outside", or "" where the world has no language.

    START and END are no letters of a language. Where it is not known what a text may become, it is "word" or "no word".
    """
    import torch

    from sandlab.worlds.flip_flop.language import FlipFlop

    marks = {getattr(made, name, None) for name in ("start_token", "end_token")}
    inner = torch.tensor([token for token in tokens.tolist() if token not in marks], dtype=torch.long)
    try:
        if bool(torch.as_tensor(made.accepts(inner)).all()):
            return "word"
        if hasattr(made, "completable"):
            return "beginning" if bool(made.completable(tokens[None], torch.tensor([len(tokens)]))[0]) else "outside"
    except (NotImplementedError, BadInput):  # an automaton without accepting states is no language
        return ""
    if isinstance(made, FlipFlop) and made.tokens == "fine":
        begins = int(tokens[0]) == 0 and _possible(laws_of(made, tokens), tokens)
        return "beginning" if begins else "outside"
    return "no word"


def _possible(laws: Tensor, tokens: Tensor) -> bool:
    """Whether every letter can follow those before it, under the laws (time, letter) of what comes next."""
    return bool((laws[:-1].gather(1, tokens[1:, None]) > 0).all())


def laws_of(made: Any, tokens: Tensor) -> Tensor:
    """The oracle's probabilities after each letter of a text, or one row at its end; `NoLaw` says why there are none.

    Some oracles read the answers of their batch, which a text does not have: one that answers differently when the
    unknown answers change has nothing to say about a text alone.
    """
    import torch

    from sandlab.worlds.base import Batch

    hidden = tokens == made.mask_token if hasattr(made, "mask_token") else torch.ones_like(tokens, dtype=torch.bool)
    found = []
    for answer in (0, 1):
        answers = tokens.where(~hidden, answer)[None]
        try:
            law = made.oracle(Batch(tokens[None], answers, torch.ones_like(answers, dtype=torch.bool)))[0].exp()
        except NotImplementedError as problem:
            raise NoLaw(str(problem)) from None
        except KeyError:
            raise NoLaw("the oracle of this world is told what is hidden, which a text alone does not say") from None
        except BadInput:
            law = torch.empty(0)
        if not law.numel():
            raise NoLaw("the oracle of this world answers whole examples only")
        found.append(law if law.ndim == 2 else law[None])
    if found[0].shape != found[1].shape or not torch.equal(found[0], found[1]):
        raise NoLaw("the oracle of this world is told the answers, which a text alone does not have")
    return found[0]


def by_letter(values: Tensor, letters: int) -> Tensor | None:
    """Hidden values of a batch (example, time) under each letter; values of pairs of letters stand under both."""
    if values.ndim != 2:
        return None
    if values.shape[1] < letters <= 2 * values.shape[1] and letters > values.shape[1] + 1:
        values = values.repeat_interleave(2, 1)
    return values[:, :letters] if values.shape[1] >= letters else None
