"""A world as a dataset folder: one Parquet file per split, and a card that says what the data is and how to make it.

`datasets.load_dataset(folder)` reads it as it is, and so does every hub that reads dataset cards.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from sandlab import __version__
from sandlab.checking import checked
from sandlab.errors import BadInput, integer
from sandlab.files import write_atomic
from sandlab.random import rng
from sandlab.registry import name_of
from sandlab.worlds.base import Batch, World
from sandlab.worlds.export import to_parquet

__all__ = ["export_dataset"]

Answer = TypeVar("Answer")
CARD = "README.md"
_CHUNK = 4096  # of the Parquet files: the same draw gives their first rows
_MEASURED = 256  # examples that the best possible loss is measured on
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_COLUMNS = {
    "inputs": "what a model reads",
    "targets": "what it should answer at each position",
    "mask": "where the answer counts",
}


@checked
def export_dataset(
    world: World, folder: str | Path, examples: int | Mapping[str, int], *, seed: int = 0, truth: bool = True
) -> Path:
    """Write SPLIT.parquet for each split, and README.md, a dataset card; returns the folder.

    examples   of each split, such as {"train": 10_000, "test": 1000}; a number is the number of training examples
    seed       each split draws from `rng(seed, split)`: other splits do not change it
    truth      with the columns "truth.<name>", what the model is not shown

    >>> export_dataset(sl.worlds.Dyck(types=2), "dyck", {"train": 10_000, "test": 1000})
    """
    splits = {"train": examples} if isinstance(examples, int) else dict(examples)
    for split, number in splits.items():
        integer(f"examples of {split!r}", number, low=1)
        if not split.isidentifier():
            raise BadInput(f"a split is one word, such as train, got {split!r}")
    if not splits:
        raise BadInput("examples must name a split, such as {'train': 1000}")
    target = Path(folder)
    _refuse_others_card(target / CARD)
    target.mkdir(parents=True, exist_ok=True)
    for split, number in splits.items():
        to_parquet(world, target / f"{split}.parquet", number, rng=rng(seed, split), truth=truth, chunk=_CHUNK)
    write_atomic(target / CARD, dataset_card(world, splits, seed=seed, truth=truth, folder=target.name).encode())
    return target


def _refuse_others_card(card: Path) -> None:
    """A README of the user's own is never replaced; a dataset card of an earlier call is."""
    if card.is_file() and "tags: [sandlab," not in card.read_text(encoding="utf-8", errors="replace"):
        raise BadInput(f"{str(card)!r} is no dataset card of SandLab: name an empty folder")


def dataset_card(world: World, splits: Mapping[str, int], *, seed: int, truth: bool, folder: str) -> str:
    """The card: a header for programs, then what the world is, the columns, the optimum, how to make the data again."""
    first = next(iter(splits))
    batch = world.sample(min(_CHUNK, splits[first]), rng=rng(seed, first))[:_MEASURED]
    parts = [
        _header(world, splits),
        f"# {_name(world)}",
        _about(world),
        _settings(world),
        _fields(batch, truth),
        _example(world, batch),
        _again(world, splits, seed, truth, folder),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(world: World, splits: Mapping[str, int]) -> str:
    total = sum(splits.values())
    size = next((text for bound, text in _SIZES if total < bound), "n>10M")
    files = "\n".join(f"  - split: {split}\n    path: {split}.parquet" for split in splits)
    return f"""---
pretty_name: {_name(world)}
license: apache-2.0
tags: [sandlab, synthetic]
size_categories: ["{size}"]
configs:
- config_name: default
  data_files:
{files}
---"""


def _about(world: World) -> str:
    lines = inspect.cleandoc(type(world).__doc__ or type(world).__name__).splitlines()
    rest = "\n".join(lines[1:]).strip("\n")
    kind = "Data of a synthetic world whose truth is known exactly, drawn with SandLab."
    return f"{lines[0]}\n\n{kind}" + (f"\n\n```text\n{rest}\n```" if rest else "")


def _settings(world: World) -> str:
    fields = dataclasses.fields(world)
    rows = "\n".join(f"| {field.name} | {_code(repr(getattr(world, field.name)))} |" for field in fields)
    return f"## Settings\n\n| setting | value |\n|---|---|\n{rows}" if fields else ""


def _fields(batch: Batch, truth: bool) -> str:
    columns: dict[str, Tensor] = {"inputs": batch.inputs, "targets": batch.targets, "mask": batch.mask}
    if truth:
        columns |= {f"truth.{name}": value for name, value in batch.truth.items()}
    rows = [
        f"| {name} | {str(value.dtype).removeprefix('torch.')} | {' × '.join(map(str, value.shape[1:])) or '1'} | "
        f"{_COLUMNS.get(name, 'not shown to the model')} |"
        for name, value in columns.items()
    ]
    return (
        "## Columns\n\nOne row per example.\n\n| column | type | shape | what it is |\n|---|---|---|---|\n"
        + "\n".join(rows)
    )


def _example(world: World, batch: Batch) -> str:
    """One example as text, the alphabet, and the loss that no predictor beats, as far as the world has them."""
    parts = []
    if not batch.inputs.is_floating_point() and batch.inputs.dim() == 2:
        letters = _known(lambda: world.letters)
        parts += [
            f"The first example: {_code(text)}" for text in [_known(lambda: world.render(batch.inputs[0]))] if text
        ]
        parts += [f"Tokens from 0 on: {_code(' '.join(letters))}"] if letters and len(letters) <= 64 else []
    best = _known(lambda: world.optimal_loss(batch))
    if best is not None and math.isfinite(best):
        parts.append(
            f"The best possible prediction, given what the model sees, loses {best:.4f} nats per counted target "
            f"(measured on the first {len(batch.inputs)} examples)."
        )
    return "\n\n".join(parts)


def _again(world: World, splits: Mapping[str, int], seed: int, truth: bool, folder: str) -> str:
    """Code that writes the same files, with the version it was written by."""
    made, whole = _call(world)
    rest = "" if truth else ", truth=False"
    note = "" if whole else "\n\nThe settings above that are no plain values are not written out in this code."
    return f"""## Make it again

Seed {seed}; each split draws from `sl.rng({seed}, split)`. Written by SandLab {__version__} with torch \
{torch.__version__.partition("+")[0]}; the same versions on a CPU give the same files.

```python
import sandlab as sl

world = {made}
sl.lab.export_dataset(world, "{folder}", {dict(splits)!r}, seed={seed}{rest})
```{note}

Licence: Apache-2.0, as SandLab."""


def _call(world: World) -> tuple[str, bool]:
    """The expression that makes the world, and whether it says all that differs from the defaults."""
    changed = [field for field in dataclasses.fields(world) if field.init and not _is_default(world, field)]
    plain = [field for field in changed if _is_plain(getattr(world, field.name))]
    settings = "".join(f", {field.name}={getattr(world, field.name)!r}" for field in plain)
    home = type(world).__module__
    outside = "" if home.startswith("sandlab.") else f"  # defined in {home}: load it first"
    made = f'sl.get("worlds", "{_name(world)}")({settings.removeprefix(", ")}){outside}'
    return made, len(plain) == len(changed)


def _is_default(world: World, field: dataclasses.Field[object]) -> bool:
    value = getattr(world, field.name)
    default = field.default_factory() if callable(field.default_factory) else field.default
    return repr(value) == repr(default)


def _is_plain(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError):
        return False


def _known(ask: Callable[[], Answer]) -> Answer | None:
    """What a world answers; None where it has no such thing."""
    try:
        return ask()
    except (NotImplementedError, BadInput, TypeError, ValueError, IndexError):
        return None


def _code(text: str) -> str:
    """Text as code in a Markdown table, whatever signs it contains."""
    short = text if len(text) <= 200 else text[:199] + "…"
    fence = "``" if "`" in short else "`"
    inner = f" {short} " if "`" in short else short
    return f"{fence}{inner}{fence}".replace("|", "\\|").replace("\n", " ")


def _name(world: World) -> str:
    try:
        return name_of("worlds", world)
    except BadInput:
        return type(world).__name__
