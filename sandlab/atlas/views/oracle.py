"""What the world page shows: examples, the oracle on a typed text, and a kept model beside it.

Settings come as texts and are read by their fields' types; nothing that a page sends is evaluated or used as a path.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from sandlab.atlas.catalogue import ON_FILES
from sandlab.atlas.views.settings import made_world, offered
from sandlab.atlas.views.typed_text import NoLaw, by_letter, hidden_states, laws_of, membership
from sandlab.errors import BadInput, integer
from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    from torch import Tensor

    from sandlab.worlds.base import Batch, World

__all__ = ["guess", "predict", "world", "worlds"]

MOST_LETTERS, MOST_EXAMPLES, MOST_POINTS, A_FEW = 400, 24, 400, 12


def worlds() -> Facts:
    """Every world that is made of plain settings."""
    from sandlab.registry import get, names, summary

    found = []
    for name in names("worlds"):
        kind = get("worlds", name)
        if dataclasses.is_dataclass(kind) and name not in ON_FILES:
            chapter = kind.__module__.split(".")[2] if kind.__module__.count(".") > 2 else ""
            found.append({"name": name, "summary": summary(kind), "chapter": chapter})
    return {"worlds": found}


def world(name: str, settings: Mapping[str, str] = MappingProxyType({}), seed: int = 0, examples: int = 8) -> Facts:
    """A world's text and parameters, and fresh examples with what is hidden behind them."""
    from sandlab.random import rng

    made = made_world(name, tuple(sorted(settings.items())))
    integer("examples", examples, low=1, high=MOST_EXAMPLES)
    batch = made.sample(examples, rng=rng(integer("seed", seed, low=0)))
    facts: Facts = {
        "name": name,
        "text": inspect.cleandoc(type(made).__doc__ or ""),
        "fields": offered(made),
        "code": f"world = sl.worlds.{made!r}\nbatch = world.sample({examples}, rng=sl.rng({seed}))",
        "tokens": not batch.inputs.is_floating_point() and batch.inputs.ndim == 2,
    }
    if not facts["tokens"]:
        return facts | _points(made.sample(MOST_POINTS, rng=rng(seed)))
    length = min(batch.inputs.shape[1], MOST_LETTERS)
    under = {key: by_letter(value, length) for key, value in batch.truth.items()}
    shown = batch.inputs[:, :length]
    truth = {key: each.tolist() for key, each in under.items() if each is not None and not each.equal(shown)}
    rows = [[int(token) for token in row[:length]] for row in batch.inputs]
    named = _named(name, tuple(sorted(settings.items())))
    return {**facts, **named, "rows": rows, "truth": truth, "typed": _enough(made, batch.inputs[0, :length])}


def _points(batch: Batch) -> Facts:
    """Examples that are numbers: their first two coordinates, and their answers where these are classes."""
    answers = batch.targets.flatten(1) if batch.targets.ndim > 1 else batch.targets[:, None]
    classes = not answers.is_floating_point() and answers.shape[1] == 1
    kinds = [f"answer {answer}" for answer in answers[:, 0].tolist()] if classes else []
    return {"points": batch.inputs.flatten(1)[:, :2].tolist(), "kinds": kinds}


def _enough(made: World, row: Tensor) -> int:
    """How many letters of an example to begin with: a few where the oracle answers beginnings, else all."""
    try:
        laws_of(made, row[:A_FEW])
    except NoLaw:
        return len(row)
    return min(A_FEW, len(row))


def predict(name: str, text: str, settings: Mapping[str, str] = MappingProxyType({})) -> Facts:
    """The oracle's law of what follows each letter of a text, what is hidden under the letters, and membership."""
    asked = name, tuple(sorted(settings.items()))
    made = made_world(*asked)
    tokens = made.read_text(text[: 4 * MOST_LETTERS])[:MOST_LETTERS]
    if not len(tokens):
        raise BadInput("write at least one letter")
    found: Facts = {**_named(*asked), "row": tokens.tolist(), "membership": membership(made, tokens)}
    found |= {"hidden": hidden_states(made, tokens), "code": _typing_code(made, text)}
    try:
        found["probs"] = [[round(p, 6) for p in row] for row in laws_of(made, tokens).tolist()]
    except NoLaw as why:
        found["why"] = str(why)
    return found


def _typing_code(made: World, text: str) -> str:
    return (
        f"world = sl.worlds.{made!r}\ntokens = world.read_text({text!r}).unsqueeze(0)\n"
        "batch = sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))\n"
        "world.oracle(batch)[0].exp()   # a row after every letter"
    )


def guess(folder: str, text: str) -> Facts:
    """The law that a kept model gives after each letter of a text, beside the oracle's.

    folder   of a model that was kept; the server names it, never the page
    """
    import json
    from pathlib import Path

    import torch

    from sandlab.models.io import load

    about = json.loads((Path(folder) / "about.json").read_text(encoding="utf-8"))
    found = predict(about["world"], text, about["settings"])
    with torch.no_grad():
        logits = load(Path(folder) / "model-0").eval()(torch.tensor([found["row"]]))[0]
    laws = torch.as_tensor(logits).double().softmax(-1).reshape(-1, logits.shape[-1])
    return {**found, "model": [[round(p, 6) for p in row] for row in laws.tolist()]}


@functools.lru_cache(maxsize=32)
def _named(name: str, settings: tuple[tuple[str, str], ...]) -> Facts:
    """The letters, the names of what is predicted, and whether that is the next letter."""
    from sandlab.random import rng

    made = made_world(name, settings)
    letters = list(made.letters)
    batch = made.sample(8, rng=rng(0))
    same = batch.targets.shape == batch.inputs.shape and made.outputs <= len(letters)
    follows = same and bool(((batch.targets == batch.inputs.roll(-1, 1)) | ~batch.mask)[:, :-1].all())
    return {"letters": letters, "answers": letters[: made.outputs] if follows else _answers(made), "follows": follows}


def _answers(made: World) -> list[str]:
    """Names of what is predicted, where that is not the next letter: states, letters under a mask, or numbers."""
    states = list(getattr(made, "names_of_states", ()))
    if len(states) == made.outputs:
        return states
    if made.outputs == len(made.letters) or (hasattr(made, "mask_token") and made.outputs < len(made.letters)):
        return list(made.letters)[: made.outputs]
    return [str(index) for index in range(made.outputs)]
