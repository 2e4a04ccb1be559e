"""Pictures for the pages of decoders: one run, token by token; the distribution of what comes out; a film on a small
tree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sandlab as sl
from sandlab import figures
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.decoding.traces import draw_trace
from sandlab.decoding.walk_film import WalkFilm

SHORT, LONG = 4, 8
RUNS = 20_000
LANGUAGE = "some ones, no two in a row"


PICTURE = (
    "Left: one run. Each bar is a token at its position in the string, from the moment it is written to the moment it "
    "is taken back. Right: how often each string comes out of 20 000 runs (orange), next to the model's own "
    "distribution and the one that is wanted, the model given the language; *distance* is the total variation to it."
)
FILM = (
    "The same on the tree of all strings of four bits: a node's size is the number the verifier gives it (a cross: 0), "
    "its shade how often it was visited, the thick path the string as it stands."
)


@dataclass(frozen=True)
class Example:
    """A model of bits that mostly avoids two ones in a row, and the strings with some ones that never have them."""

    tree: Tree
    accepted: np.ndarray

    @classmethod
    def of(cls, length: int) -> Example:
        tables = [probs.copy() for probs in Tree.random(2, length, rng=sl.rng(length, "page"), concentration=4.0).probs]
        for probs in tables[1:]:
            probs[1::2, 1] *= 0.35  # after a one
            probs /= probs.sum(1, keepdims=True)
        tree = Tree(tuple(tables))
        strings = tree.strings()
        apart = ~(strings[:, 1:] & strings[:, :-1]).astype(bool).any(1)
        return cls(tree, (apart & strings.any(1)).astype(float))

    @property
    def verdicts(self) -> list[np.ndarray]:
        return self.tree.verdicts(self.accepted)

    def values(self, tree: Tree) -> list[np.ndarray]:
        """Values with log-normal errors inside the tree."""
        chance = np.random.default_rng(1)
        noisy = [value * np.exp(0.6 * chance.standard_normal(value.shape)) for value in tree.values(self.accepted)]
        return [*noisy[:-1], self.accepted]

    @property
    def target(self) -> np.ndarray:
        weights = self.tree.reach[-1] * self.accepted
        return weights / weights.sum()


NUMBERS: dict[str, tuple[str, Callable[[Example], list[np.ndarray]]]] = {
    "value-guided": ("values that err", lambda example: example.values(example.tree)),
    "vgb": ("values that err", lambda example: example.values(example.tree)),
    "sinclair-jerrum": ("counts that err", lambda example: example.values(Tree.uniform(2, example.tree.depth))),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "nucleus": {"top_p": 0.6},
    "temperature": {"temperature": 0.5},
    "backtracking": {"quota": 2, "stride": 2},
    "block-best-of-n": {"block": 2},
}
FILMS: dict[str, tuple[dict[str, Any], int]] = {
    "backtracking": ({"quota": 3, "stride": 2}, 4),
    "vgb": ({"returns": "final", "max_steps": 70}, 14),
    "sinclair-jerrum": ({"returns": "final", "max_steps": 70}, 2),
    "tokenwise-rejection": ({}, 4),
}
"""Decoder → parameters of the run that is filmed, and its seed."""


def run(name: str, example: Example, runs: int, seed: int, **options: Any) -> Any:
    """Strings of one decoder from the empty prompt."""
    decoder = sl.get("decoders", name)(**(options or OPTIONS.get(name, {})))
    return decoder.generate(
        TreeGenerator(example.tree),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=TableVerifier(_numbers(name)[1](example), 2) if decoder.needs_verifier else None,
        max_new=example.tree.depth,
        rng=sl.rng(seed),
        trace=runs == 1,
    )


def _numbers(name: str) -> tuple[str, Callable[[Example], list[np.ndarray]]]:
    return NUMBERS.get(name, ("the exact verifier", lambda example: example.verdicts))


def decoder_picture(name: str) -> bytes:
    """One run on strings of 8 bits, and the distribution of the strings of 4 bits that come out, against model and
    target.
    """
    figure, axes = figures.new(columns=2, width=5.2, height=3.4)
    draw_trace(axes[0], run(name, Example.of(LONG), 1, 3).events[0])
    with figures.style():
        axes[0].set_title(f"one run: {LONG} bits, {LANGUAGE}")
    _draw_law(axes[1], name)
    return _svg(figure)


def _draw_law(axis: Any, name: str) -> None:
    example = Example.of(SHORT)
    done = run(name, example, RUNS, 5)
    powers = 2 ** torch.arange(SHORT - 1, -1, -1)
    ours = np.bincount((done.tokens * powers).sum(1).numpy(), minlength=2**SHORT) / RUNS
    inside = np.flatnonzero(example.accepted)

    def grouped(probs: np.ndarray) -> np.ndarray:
        return np.append(probs[inside], probs.sum() - probs[inside].sum())

    distance = 0.5 * float(np.abs(ours - example.target).sum())
    needs = sl.get("decoders", name).needs_verifier
    words = ["".join(map(str, string)) for string in example.tree.strings()[inside]] + ["others"]
    places = np.arange(len(words))
    with figures.style():
        axis.bar(places - 0.28, grouped(example.tree.reach[-1]), 0.26, color="#c4c4c4", label="the model")
        axis.bar(
            places,
            grouped(example.target),
            0.26,
            color=figures.COLOURS[0],
            label="the target: the model given the language",
        )
        with_what = f" with {_numbers(name)[0]}" if needs else ""
        axis.bar(places + 0.28, grouped(ours), 0.26, color=figures.COLOURS[3], label=f"{name}{with_what}")
        axis.set_xticks(places, words, rotation=45, ha="right", fontsize=8)
        queries = float(done.counters["oracle_calls"].double().mean())
        axis.set(ylabel="probability", title=f"distance to the target {distance:.2f}, {queries:.1f} queries a string")
        tallest = max(float(grouped(probs).max()) for probs in (ours, example.target, example.tree.reach[-1]))
        axis.set_ylim(0, 1.35 * tallest)
        axis.legend(fontsize=8)


def decoder_film(name: str) -> tuple[bytes, bytes] | None:
    """A film of one run on the tree of all strings of 4 bits (GIF), and some of its moments side by side (SVG)."""
    if name not in FILMS:
        return None
    options, seed = FILMS[name]
    example = Example.of(SHORT)
    events = run(name, example, 1, seed, **options).events[0] if options else run(name, example, 1, seed).events[0]
    film = WalkFilm(example.tree, _numbers(name)[1](example), events)
    with tempfile.TemporaryDirectory() as folder:
        return film.save(Path(folder) / "film.gif").read_bytes(), _svg(film.strip())


def _svg(figure: Any) -> bytes:
    import io

    buffer = io.BytesIO()
    with figures.style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
