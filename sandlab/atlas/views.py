"""What the pages ask for: functions from plain values to plain values, run in worker processes.

Settings come as texts and are read by their fields' types; nothing that a page sends is evaluated or used as a path.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sandlab.errors import BadInput, integer

__all__ = ["VIEWS"]

MOST_LETTERS, MOST_EXAMPLES, MOST_LENGTH = 400, 24, 256
Json = dict[str, Any]


def worlds() -> Json:
    """Every world that is made of plain settings and gives tokens."""
    from sandlab.registry import get, names, summary

    found = []
    for name in names("worlds"):
        kind = get("worlds", name)
        if dataclasses.is_dataclass(kind):
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
    return {**facts, "letters": made.letters, "answers": _answers(made), "rows": rows, "truth": truth}


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
    found: Json = {"letters": made.letters, "answers": _answers(made), "row": tokens.tolist(), "accepts": None}
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


def circuit(
    machine: str, word: str = "", length: int = 32, method: str = "auto", bits: int | None = None, off: str = ""
) -> Json:
    """A machine compiled into a transformer, and what each layer reads on a word.

    bits   fractional bits of weights and activations (None: all);  off: a head "layer.head" whose attention is removed
    """
    import torch

    from sandlab.circuits.automata.compiler import compile
    from sandlab.cli.circuits import _algebra
    from sandlab.worlds.automata.reading import read_machine

    integer("length", length, low=1, high=MOST_LENGTH)
    made = read_machine(machine)
    model: Any = compile(made, length, method)
    found: Json = {
        "states": made.names_of_states,
        "letters": made.letters,
        "transitions": torch.as_tensor(made.table).tolist() if hasattr(made, "table") else [],
        "algebra": _algebra(made),
        "note": getattr(model.config, "note", ""),
        "parameters": model.parameter_count(),
        "code": f"model = sl.circuits.compile({machine!r}, {length}, {method!r})",
    }
    return found | _computation(made, model, word, length, bits, off)


def _computation(made: Any, model: Any, word: str, length: int, bits: int | None, off: str) -> Json:
    import torch

    from sandlab.circuits.precision import rounded
    from sandlab.models.hooks import patch, record

    tokens = made.read_text(word)[:length] if word else torch.randint(made.alphabet, (min(length, 12),))
    patterns: dict[str, Any] = {}
    changes = _without(off)
    with contextlib.ExitStack() as stack:
        model = model if bits is None else stack.enter_context(rounded(model, integer("bits", bits, low=0, high=40)))
        if changes:
            stack.enter_context(patch(model, changes))
        cache = stack.enter_context(record(model, "*"))
        stack.enter_context(torch.no_grad())
        answers = model(tokens.unsqueeze(0)).argmax(-1)[0].tolist()
        for name in cache:
            if name.endswith("attention.pattern"):
                patterns[name] = [[[round(w, 4) for w in row] for row in head] for head in cache[name][0].tolist()]
    truth = torch.as_tensor(made.labels)[made.run(tokens.unsqueeze(0))][0].tolist()
    return {
        "word": tokens.tolist(),
        "answers": answers,
        "truth": truth,
        "right": sum(a == b for a, b in zip(answers, truth)) / max(1, len(truth)),
        "layers": [{"name": name, "heads": heads} for name, heads in patterns.items()],
    }


def _without(off: str) -> dict[str, Any]:
    """The patch that removes one head's attention."""
    if not off:
        return {}
    layer, _, head = off.partition(".")
    if not (layer.isdigit() and head.isdigit()):
        raise BadInput(f"a head is written layer.head, such as 0.1, got {off!r}")

    def remove(pattern: Any) -> Any:
        changed = pattern.clone()
        changed[..., int(head), :, :] = 0.0
        return changed

    return {f"layers.{int(layer)}.attention.pattern": remove}


def claims() -> Json:
    """Every claim with its published finding, read from the records: no study is imported."""
    from sandlab.lab._report.published import published

    rows: dict[str, Json] = {}
    for run in published():
        for finding in run.findings if run.preset != "null" else ():
            rows[finding.claim] = {
                "id": finding.claim,
                "study": run.study,
                "chapter": run.study.partition("/")[0],
                "statement": finding.statement,
                "relation": finding.relation,
                "paper": finding.paper,
                "source": finding.source,
                "verdict": finding.verdict,
                "preset": run.preset,
                "mean": _finite(finding.mean),
                "low": _finite(finding.low),
                "high": _finite(finding.high),
                "values": [_finite(value) for value in list(finding.values)[:64]],
                "date": run.date,
            }
    return {"claims": list(rows.values())}


def history(claim: str) -> Json:
    """The recorded verdicts of one claim, oldest first, and whether its published run is current."""
    from sandlab.lab._report.published import last_published, ledger
    from sandlab.registry import get

    study = claim.partition(".")[0]
    get("studies", study)
    known = last_published(study).get(claim)
    rows = [dataclasses.asdict(entry) for entry in ledger(claim)]
    status, reduced = (known[0].status, known[0].reduced) if known else ("not run", [])
    return {"history": rows, "status": status, "reduced": reduced, "figures": _figures(study)}


def _figures(study: str) -> list[Json]:
    from sandlab.lab._report.published import published

    return [
        {"study": run.study, "preset": run.preset, "name": file.stem}
        for run in published(study)
        for file in sorted(run.folder.rglob("*.svg"))
    ]


def sources() -> Json:
    """Every published definition, theorem and experiment, where it lives, and what its claims found."""
    import tomllib

    from sandlab.lab._report.coverage import REPOSITORY

    verdicts = {row["id"]: row["verdict"] for row in claims()["claims"]}
    by_study: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        by_study.setdefault(name.partition(".")[0], []).append(verdict)
    rows = []
    for file in sorted((REPOSITORY / "coverage").glob("*.toml")):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        for name, value in table.get("ids", {}).items():
            places = [value] if isinstance(value, str) else list(value)
            found = [verdicts.get(place[6:], "not run") for place in places if place.startswith("claim:")]
            found += [each for place in places if place.startswith("study:") for each in by_study.get(place[6:], [])]
            rows.append({"chapter": table.get("spec", file.stem), "id": name, "places": places, "verdicts": found})
    return {"rows": rows}


def cards() -> Json:
    """The recorded cards of the built-in architectures."""
    from sandlab.lab._card.measure import recorded

    found = [*recorded("quick"), *recorded("full")]
    return {
        "cards": [
            {
                "model": card.model,
                "size": card.size,
                "rows": [{"task": r.task, "test": r.test, "score": r.score, "scores": r.scores} for r in card.rows],
            }
            for card in found
        ]
    }


VIEWS: dict[str, Callable[..., Json]] = {
    view.__name__: view for view in (worlds, world, predict, circuit, claims, history, sources, cards)
}


def _world(name: str, settings: Mapping[str, str]) -> Any:
    from sandlab.cli.browse import make_world

    if len(settings) > 40 or any(len(value) > 2000 for value in settings.values()):
        raise BadInput("that is more settings than a world has")
    made = make_world(name, {key: value for key, value in settings.items() if value != ""})
    length = getattr(made, "length", 0)
    longest = max(length) if isinstance(length, tuple) else length
    if isinstance(longest, int) and longest > 2048:
        raise BadInput(f"length must be at most 2048 on this page, got {longest}")
    return made


def _answers(made: Any) -> list[str]:
    """Names of the predicted classes: the letters, where as many are predicted as are read."""
    letters = list(made.letters)
    return letters if made.outputs == len(letters) else [str(index) for index in range(made.outputs)]


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


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
