"""Public code of the field for the same job: its generators and ours, timed side by side in a checkout of the user's.

    sandlab bench --against PATH          or          python benchmarks/against.py PATH

An adapter says which files tell the repository, and gives pairs of functions (theirs, ours) that each make a batch and
return how many things they made. Nothing of the repositories is part of SandLab: their code is imported from PATH, in
a process of its own, and what they need besides (JAX for two of them) must be installed beside it. Both sides are
called once before they are timed, so that compilation is not counted. CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data_generation import speed

import sandlab as sl

Made = Callable[[], int]


@dataclass(frozen=True)
class Job:
    """One job done by both."""

    name: str
    unit: str
    theirs: Made
    ours: Made


@dataclass(frozen=True)
class Adapter:
    """A repository: the files that tell it, and its jobs given the folder."""

    name: str
    files: tuple[str, ...]
    jobs: Callable[[Path], Iterator[Job]]


def ours(world: Any, examples: int, per_example: int) -> Made:
    rng = sl.rng(0)
    return lambda: len(world.sample(examples, rng=rng)) * per_example


def package(name: str, root: Path) -> None:
    """Make a folder importable under a name of its own, whatever the folder is called."""
    module = types.ModuleType(name)
    module.__path__ = [str(root)]
    sys.modules[name] = module


def zoology(root: Path) -> Iterator[Job]:
    """Multi-query associative recall. Theirs spreads the queries over random filler, ours asks them in a row."""
    package("zoology", root / "zoology")
    generate = importlib.import_module("zoology.data.multiquery_ar").multiquery_ar

    for vocab, pairs in ((256, 16), (8192, 16)):
        world = sl.worlds.AssociativeRecall(keys=vocab // 2, values=vocab // 2, pairs=pairs, queries=pairs)

        def theirs(vocab: int = vocab, pairs: int = pairs) -> int:
            made = generate(vocab_size=vocab, num_examples=128, input_seq_len=64, seed=0, num_kv_pairs=pairs)
            return len(made.inputs) * pairs

        title = f"associative recall, {pairs} pairs and queries, vocabulary {vocab}"
        yield Job(title, "queries/s", theirs, ours(world, 1024, pairs))


def mad(root: Path) -> Iterator[Job]:
    """In-context recall of 8 keys. Theirs mixes pairs and queries, ours gives the pairs first; 128 tokens each."""
    package("mad", root / "mad")
    package("mad.data", root / "mad" / "data")  # its own __init__ loads more than the generators need
    generate = importlib.import_module("mad.data.instances").generate_in_context_recall_instance
    source = np.random.default_rng(0)
    settings = {"vocab_size": 16, "seq_len": 128, "multi_query": True, "noise_vocab_size": 0, "is_training": False}

    def theirs() -> int:
        made = [generate(rng=source, **settings) for _ in range(32)]
        return torch.as_tensor(np.stack([inputs for inputs, _ in made])).shape[0] * 128

    world = sl.worlds.AssociativeRecall(keys=8, values=8, pairs=8, queries=112)
    yield Job("in-context recall, 128 tokens", "tokens/s", theirs, ours(world, 1024, 128))


def chomsky(root: Path) -> Iterator[Job]:
    """Tasks of the Chomsky hierarchy that are worlds here; theirs label the end of the string, ours every position."""
    package("neural_networks_chomsky_hierarchy", root)
    jax = importlib.import_module("jax")

    def theirs(task: Any, length: int) -> Made:
        key = jax.random.PRNGKey(0)

        def make() -> int:
            jax.block_until_ready(task.sample_batch(key, 1024, length))
            return 1024 * length

        return make

    circle = sl.worlds.Automaton([[(place + move) % 5 for move in (-1, 0, 1)] for place in range(5)], length=256)
    pairs = [
        ("regular.parity_check", "ParityCheck", sl.worlds.Cyclic(size=2, length=256), 256),
        ("regular.cycle_navigation", "CycleNavigation", circle, 256),
        ("cs.duplicate_string", "DuplicateString", sl.worlds.CopyString(states=2, size=256), 256),
    ]
    for module, name, world, length in pairs:
        task = getattr(importlib.import_module(f"neural_networks_chomsky_hierarchy.tasks.{module}"), name)()
        title = f"{module.split('.')[1].replace('_', ' ')}, strings of {length}"
        yield Job(title, "letters/s", theirs(task, length), ours(world, 1024, length))


def ngrams(root: Path) -> Iterator[Job]:
    """In-context trigrams with a fresh kernel per sequence, the true distribution as target."""
    sys.path.insert(0, str(root))
    jax = importlib.import_module("jax")
    problems = importlib.import_module("problems")
    length, states = 32, 5
    parents = [[], []] + [[place - 2, place - 1] for place in range(2, length + 1)]
    problem = problems.InContextDAG(states, parents, 0.5)
    draw = jax.jit(jax.vmap(problem.sample))
    keys = jax.random.split(jax.random.PRNGKey(0), 1024)

    def theirs() -> int:
        jax.block_until_ready(draw(keys))
        return 1024 * length

    world = sl.worlds.InContextNgrams(states=states, order=2, length=length, concentration=0.5)
    yield Job("in-context trigrams, 5 states, 32 tokens", "tokens/s", theirs, ours(world, 1024, length))


def dyck(root: Path) -> Iterator[Job]:
    """Dyck words of 32 brackets of two types, (0.8, 0.2), depth unbounded."""
    sys.path.insert(0, str(root / "src"))
    settings = {"length": 32, "num_types": 2, "type_probs": [0.8, 0.2], "seed": 0}
    source = importlib.import_module("dyck").RandomWalkDyck(settings)

    def theirs() -> int:
        return len(torch.tensor([source.generate()["tokens"] for _ in range(32)])) * 32

    world = sl.worlds.Dyck(depth=None, length=32, words="complete", type_probs=(0.8, 0.2))
    yield Job("Dyck words of 32 brackets", "brackets/s", theirs, ours(world, 4096, 32))


ADAPTERS = (
    Adapter("Zoology", ("zoology/data/multiquery_ar.py",), zoology),
    Adapter("MAD-lab", ("mad/data/instances.py",), mad),
    Adapter("Chomsky hierarchy", ("tasks/task.py", "tasks/regular/parity_check.py"), chomsky),
    Adapter("sub-n-grams-are-stationary", ("problems.py", "models.py", "train.py"), ngrams),
    Adapter("LM_Query_Complexity", ("src/dyck.py", "src/lm.py"), dyck),
)


def recognise(path: Path) -> Adapter:
    """The adapter whose files lie at the path."""
    path = Path(path)
    if not path.is_dir():
        raise sl.BadInput(f"{path} is no folder: give the folder of a checkout, of {_known()}")
    for adapter in ADAPTERS:
        if all((path / file).is_file() for file in adapter.files):
            return adapter
    raise sl.BadInput(f"{path} is none of the repositories with an adapter ({_known()}): see benchmarks/against.py")


def measure_against(path: str) -> Iterator[dict[str, Any]]:
    """A row for each job: ours and theirs."""
    root = Path(path).resolve()
    adapter = recognise(root)
    torch.set_num_threads(1)
    try:
        for job in adapter.jobs(root):
            own, other = speed(job.ours, 1.0), speed(job.theirs, 1.0)
            row = {"name": job.name, "unit": job.unit, "ours": own, "baseline": other, "ratio": own / other}
            yield {**row, "against": adapter.name}
    except ModuleNotFoundError as error:
        raise sl.BadInput(f"it needs {error.name!r}, which is not installed here: pip install {error.name}") from error
    except (AttributeError, TypeError, KeyError) as error:
        raise sl.BadInput(f"its interface is not the one that the adapter knows ({error})") from error


def _known() -> str:
    return ", ".join(adapter.name for adapter in ADAPTERS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Public generators and ours, side by side.")
    parser.add_argument("path", help="a checkout of a public repository")
    for row in measure_against(parser.parse_args().path):
        print(f"{row['name']:<58} {row['ours']:.3g} {row['unit']}   theirs {row['baseline']:.3g}   {row['ratio']:.1f}×")


if __name__ == "__main__":
    main()
