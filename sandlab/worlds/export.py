"""Worlds as datasets: Parquet files, Hugging Face `datasets`, torch iterable datasets."""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from sandlab.checking import checked
from sandlab.errors import BadInput, integer, shown
from sandlab.files import refuse_when_full, sync_folder
from sandlab.random import rng as seeded_rng
from sandlab.registry import name_of
from sandlab.worlds.base import Batch, World

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

__all__ = ["WorldDataset", "read_parquet", "to_huggingface", "to_parquet"]


@checked
def to_parquet(
    world: World, path: str | Path, examples: int, *, rng: torch.Generator, truth: bool = True, chunk: int = 4096
) -> Path:
    """Write examples to a Parquet file, one row each, with columns inputs, targets, mask and "truth.<name>".

    The file's metadata holds the world's name and settings under "sandlab". The file is written under a temporary name
    and then renamed, so that a reader never sees an unfinished file.
    """
    integer("examples", examples, low=1)
    integer("chunk", chunk, low=1)
    path = Path(path)
    if not path.parent.is_dir():
        raise BadInput(f"there is no folder {str(path.parent)!r} to write {path.name!r} into: create it first")
    if path.is_dir():
        raise BadInput(f"{str(path)!r} is a folder: give the name of a file")
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with refuse_when_full(path), open(unfinished, "xb") as file:
            _write_chunks(file, world, examples, rng, truth, chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return path


def _write_chunks(file: BinaryIO, world: World, examples: int, rng: torch.Generator, truth: bool, chunk: int) -> None:
    import pyarrow.parquet as parquet

    writer = None
    try:
        for start in range(0, examples, chunk):
            table = _table(world, world.sample(min(chunk, examples - start), rng=rng), truth)
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


@checked
def read_parquet(path: str | Path) -> Batch:
    """The batch that `to_parquet` wrote."""
    import pyarrow.parquet as parquet

    path = Path(path)
    if not path.is_file():
        raise BadInput(f"there is no file {str(path)!r}: write one with to_parquet")
    try:
        table = parquet.read_table(path)
        shapes = json.loads((table.schema.metadata or {}).get(b"sandlab", b"{}")).get("shapes")
        if shapes is None:
            raise BadInput(f"{str(path)!r} was not written by to_parquet: its metadata names no world")
        columns = {name: _column(table.column(name), shape) for name, shape in shapes.items()}
        missing = {"inputs", "targets", "mask"} - set(columns)
    except BadInput:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:  # pyarrow's are of these kinds
        raise BadInput(f"{str(path)!r} is damaged ({str(problem)[:120]}): write it again with to_parquet") from None
    if missing:
        raise BadInput(f"{str(path)!r} has no {', '.join(sorted(missing))}: write it again with to_parquet")
    truth = {name.removeprefix("truth."): value for name, value in columns.items() if name.startswith("truth.")}
    return Batch(columns["inputs"], columns["targets"], columns["mask"], truth)


@checked
def to_huggingface(world: World, examples: int, *, rng: torch.Generator, truth: bool = True) -> datasets.Dataset:
    """A `datasets.Dataset` with the columns of the Parquet export (needs the [hf] extra)."""
    try:
        from datasets import Dataset
    except ImportError as missing:
        raise BadInput('Hugging Face datasets is not installed: pip install "sandlab[hf]"') from missing
    integer("examples", examples, low=1)
    return Dataset(_table(world, world.sample(examples, rng=rng), truth, metadata=False))


@checked
class WorldDataset(IterableDataset[dict[str, Tensor]]):
    """A torch dataset that samples a world on the fly: dictionaries of inputs, targets and mask.

    world       any world
    seed        of the stream; every worker of a DataLoader draws different examples, the same ones for the same seed
    batch_size  None: single examples, for a DataLoader that batches them; a number: whole batches (the DataLoader then
                takes batch_size=None)
    size        number of items over all workers; None: endless
    """

    def __init__(self, world: World, *, seed: int, batch_size: int | None = None, size: int | None = None) -> None:
        if not isinstance(world, World):
            raise BadInput(f"world must be a World, got {shown(world)}")
        self.world = world
        self.seed = integer("seed", seed, low=0)
        self.batch_size = None if batch_size is None else integer("batch_size", batch_size, low=1)
        self.size = None if size is None else integer("size", size, low=1)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        generator = seeded_rng(self.seed, "dataset", worker)
        left = None if self.size is None else len(range(worker, self.size, workers))
        items = self._batches(generator) if self.batch_size else self._examples(generator)
        while left is None or left > 0:
            yield next(items)
            left = None if left is None else left - 1

    def _batches(self, generator: torch.Generator) -> Iterator[dict[str, Tensor]]:
        for batch in self.world.stream(self.batch_size or 1, rng=generator):
            yield {"inputs": batch.inputs, "targets": batch.targets, "mask": batch.mask}

    def _examples(self, generator: torch.Generator) -> Iterator[dict[str, Tensor]]:
        # Sampling is vectorised over examples: drawing them one by one would be slow.
        for batch in self.world.stream(256, rng=generator):
            for inputs, targets, mask in zip(batch.inputs, batch.targets, batch.mask):
                yield {"inputs": inputs, "targets": targets, "mask": mask}


def _table(world: World, batch: Batch, truth: bool, metadata: bool = True) -> pa.Table:
    import pyarrow as pa

    columns = {"inputs": batch.inputs, "targets": batch.targets, "mask": batch.mask}
    if truth:
        columns |= {f"truth.{name}": value for name, value in batch.truth.items()}
    table = pa.table({name: _arrow(value.cpu().numpy()) for name, value in columns.items()})
    if not metadata:
        return table
    about = {
        "world": _name(world),
        "settings": {field.name: repr(getattr(world, field.name)) for field in dataclasses.fields(world)},
        "shapes": {name: list(value.shape[1:]) for name, value in columns.items()},
    }
    return table.replace_schema_metadata({"sandlab": json.dumps(about)})


def _arrow(values: np.ndarray) -> pa.Array:
    """An Arrow array with one row per example; the remaining axes are nested fixed-size lists."""
    import pyarrow as pa

    array = pa.array(values.reshape(-1))
    for side in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, side)
    return array


def _column(column: pa.ChunkedArray, shape: list[int]) -> Tensor:
    array = column.combine_chunks()
    for _ in shape:
        array = array.flatten()
    flat = array.to_numpy(zero_copy_only=False)
    return torch.from_numpy(np.array(flat).reshape(len(column), *shape))


def _name(world: World) -> str:
    try:
        return name_of("worlds", world)
    except BadInput:
        return type(world).__name__
