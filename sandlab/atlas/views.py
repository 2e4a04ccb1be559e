"""What the pages ask for: functions from plain values to plain values, run in worker processes.

Settings come as texts and are read by their fields' types; nothing that a page sends is evaluated or used as a path.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sandlab.atlas.circuit_views import circuit
from sandlab.atlas.decoding_views import race, refine, walk
from sandlab.atlas.record_views import cards, claims, history, sources, standing
from sandlab.errors import BadInput, integer

__all__ = ["VIEWS"]

MOST_LETTERS, MOST_EXAMPLES = 400, 24
ON_FILES = ("aligned-text", "contrastive-pairs", "masked-text", "topic-text")  # worlds that read a file of the user's
Json = dict[str, Any]


def worlds() -> Json:
    """Every world that is made of plain settings."""
    from sandlab.registry import get, names, summary

    found = []
    for name in names("worlds"):
        kind = get("worlds", name)
        if dataclasses.is_dataclass(kind) and name not in ON_FILES:
            chapter = kind.__module__.split(".")[2] if kind.__module__.count(".") > 2 else ""
            found.append({"name": name, "summary": summary(kind), "chapter": chapter})
    return {"worlds": found}


def world(name: str, settings: Mapping[str, str] = MappingProxyType({}), seed: int = 0, examples: int = 8) -> Json:
    """A world's text and parameters, and fresh examples with what is hidden behind them."""
    from sandlab.random import rng

    made = _world(name, settings)
    integer("examples", examples, low=1, high=MOST_EXAMPLES)
    batch = made.sample(examples, rng=rng(integer("seed", seed, low=0)))
    facts: Json = {
        "name": name,
        "text": inspect.cleandoc(type(made).__doc__ or ""),
        "fields": _fields(made),
        "code": f"world = sl.worlds.{made!r}\nbatch = world.sample({examples}, rng=sl.rng({seed}))",
        "tokens": not batch.inputs.is_floating_point() and batch.inputs.ndim == 2,
    }
    if not facts["tokens"]:
        return {**facts, "points": batch.inputs.flatten(1)[:, :2].tolist()}
    length = min(batch.inputs.shape[1], MOST_LETTERS)
    truth = {
        key: value[:, :length].tolist()
        for key, value in batch.truth.items()
        if value.ndim == 2 and value.shape[1] >= length and value.shape[0] == examples
    }
    rows = [[int(token) for token in row[:length]] for row in batch.inputs]
    return {**facts, **_names(made), "rows": rows, "truth": truth}


def predict(name: str, text: str, settings: Mapping[str, str] = MappingProxyType({})) -> Json:
    """The oracle's law of what follows each letter of a text, and whether the text belongs to the language."""
    import torch

    from sandlab.worlds.base import Batch

    made = _world(name, settings)
    tokens = made.read_text(text[: 4 * MOST_LETTERS])[:MOST_LETTERS]
    if not len(tokens):
        raise BadInput("write at least one letter")
    inputs = tokens.unsqueeze(0)
    batch = Batch(inputs, inputs, torch.ones_like(inputs, dtype=torch.bool))
    found: Json = {**_names(made), "row": tokens.tolist(), "accepts": None}
    try:
        logs = made.oracle(batch)[0]
        logs = logs if logs.ndim == 2 else logs.unsqueeze(0)
        found["probs"] = [[round(float(p), 6) for p in row] for row in logs.exp().tolist()]
    except (NotImplementedError, KeyError) as problem:
        found["why"] = str(problem).strip("'\"") or "this world has no oracle for a text alone"
    with contextlib.suppress(NotImplementedError):
        found["accepts"] = bool(torch.as_tensor(made.accepts(tokens)).all())
    found["code"] = f"world = sl.worlds.{made!r}\nworld.oracle(batch_of(world.read_text({made.render(tokens)!r})))"
    return found


def guess(folder: str, text: str) -> Json:
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


VIEWS: dict[str, Callable[..., Json]] = {
    view.__name__: view
    for view in (worlds, world, predict, guess, circuit, walk, race, refine, claims, history, standing, sources, cards)
}


def _world(name: str, settings: Mapping[str, str]) -> Any:
    from sandlab.cli.browse import make_world

    if name in ON_FILES:
        raise BadInput(f"{name} reads a file: make it in Python or at the terminal")
    if len(settings) > 40 or any(len(value) > 2000 for value in settings.values()):
        raise BadInput("that is more settings than a world has")
    made = make_world(name, {key: value for key, value in settings.items() if value != ""})
    length = getattr(made, "length", 0)
    longest = max(length) if isinstance(length, tuple) else length
    if isinstance(longest, int) and longest > 2048:
        raise BadInput(f"length must be at most 2048 on this page, got {longest}")
    return made


def _names(made: Any) -> Json:
    """The letters, the names of what is predicted, and whether that is the next letter."""
    from sandlab.random import rng

    letters = list(made.letters)
    batch = made.sample(8, rng=rng(0))
    same = batch.targets.shape == batch.inputs.shape and made.outputs <= len(letters)
    follows = same and bool(((batch.targets == batch.inputs.roll(-1, 1)) | ~batch.mask)[:, :-1].all())
    answers = letters[: made.outputs] if follows else [str(index) for index in range(made.outputs)]
    return {"letters": letters, "answers": answers, "follows": follows}


def _fields(made: Any) -> list[Json]:
    """Name, kind and value of each setting that can be written as text."""
    found = []
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if field.init and (value is None or isinstance(value, (bool, int, float, str))):
            kind = type(value).__name__ if value is not None else "text"
            found.append(
                {
                    "name": field.name,
                    "kind": kind,
                    "value": "" if value is None else str(value),
                    "type": str(field.type),
                }
            )
    return found
