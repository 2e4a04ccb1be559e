"""A circuit drawn as the computation it performs: what each position holds after each layer, and whom it read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.circuits.drawing import trace
from sandlab.errors import BadInput
from sandlab.figures import COLOURS, new, style
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.hooks import record
from sandlab.worlds.automata.machine import Automaton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["animate_computation", "draw_computation", "reading_paths"]

MOST_LETTERS = 24
# Smaller weights are what softmax leaves on positions that are not meant; averages over a short word give more to each.
_SEEN = 0.01
_QUIET = "#c9c9c9"
# What is drawn says when: letters at step 0, lines into layer n at 2n − 1, its boxes at 2n. Labels that begin so are
# in no legend.
_STEP = "_step "

Reader = Callable[[dict[str, np.ndarray]], list[str]]


def draw_computation(
    model: TheoryTransformer,
    machine: Automaton,
    word: Int[Tensor, "time"] | Sequence[int],
    *,
    read: Reader | None = None,
    title: str = "",
) -> Figure:
    """Positions from left to right, layers from bottom to top: boxes say what is held, lines who was attended to.

    Lines on which the last position's answer depends are coloured by head, the others pale; thin lines are small
    weights. In a scan the boxes are maps of the states (where states 0, 1, 2, … lead), and the coloured lines the
    binary tree that composes them. In a Krohn–Rhodes circuit they are the states still possible, which every level
    narrows down until one is left; in a gridworld the sum of the moves, walls ignored; in a group circuit the code of
    the element. Other circuits show the value of their output channel. The last layer shows the answer, the row above
    it the truth.

    read   turns the channels of one layer (name → values at the word's positions) into a text per position
    """
    tokens = torch.as_tensor(word)
    if len(tokens) > MOST_LETTERS:
        raise BadInput(f"boxes for {len(tokens)} letters cannot be read: take a word of at most {MOST_LETTERS}")
    layers, prefix = model.config.layers, model.config.prefix
    channels = trace(model, tokens)
    read = read or _reader(model, machine)
    inner = [read({name: rows[n][prefix:] for name, rows in channels.items()}) for n in range(1, layers)]
    with torch.no_grad():
        answers = model(tokens.unsqueeze(0))[0].argmax(-1)
    texts = [_letters(machine, tokens), *inner, *([_named(machine, answers)] if layers else [])]
    patterns = _patterns(model, tokens)
    needed = reading_paths(patterns)
    width = max(0.5, 0.1 + 0.066 * max(len(text) for row in texts for text in row))
    with style():
        _, (axis,) = new(width=1.2 + width * (len(tokens) + 1), height=0.8 + 0.62 * layers)
        for place, pattern in enumerate(patterns):
            _draw_lines(axis, pattern, place, needed[place + 1], prefix)
        for place, row in enumerate(texts):
            _draw_boxes(axis, row, place, needed[place][prefix:])
        true = torch.as_tensor(machine.labels)[machine.run(tokens.unsqueeze(0))[0]]
        for position, name in enumerate(_named(machine, true)):
            axis.text(position, layers + 0.55, name, ha="center", va="center", fontsize=8, color="#555555")
        axis.set_yticks(
            [*range(layers + 1), layers + 0.55], ["letters", *(f"layer {n + 1}" for n in range(layers)), "truth"]
        )
        axis.set(xlim=(-1.6 if prefix else -0.7, len(tokens) - 0.4), ylim=(-0.4, layers + 0.8), xticks=[])
        axis.set_title(title or model.config.note.split(":")[0], loc="left", fontweight="bold")
        axis.grid(False)
        for spine in axis.spines.values():
            spine.set_visible(False)
    return axis.figure  # type: ignore[return-value]


def animate_computation(
    model: TheoryTransformer, machine: Automaton, word: Int[Tensor, "time"] | Sequence[int], *, title: str = ""
) -> FuncAnimation:
    """A film of `draw_computation`: letters first, then layer after layer who reads from whom and what comes of it.

    Save it with `sandlab.figures.save_film(film, "scan.gif", fps=1)`.
    """
    from matplotlib.animation import FuncAnimation

    figure = draw_computation(model, machine, word, title=title)
    (axis,) = figure.axes
    steps = {artist: int(str(artist.get_label()).removeprefix(_STEP)) for artist in [*axis.lines, *axis.texts]
             if str(artist.get_label()).startswith(_STEP)}  # fmt: skip

    def show(frame: int) -> list[Any]:
        for artist, step in steps.items():
            artist.set_visible(step <= frame)
        return list(steps)

    return FuncAnimation(figure, show, frames=2 * model.config.layers + 2, blit=False)


def reading_paths(patterns: Sequence[Float[np.ndarray, "head query key"] | None]) -> list[Bool[np.ndarray, "token"]]:
    """Per layer (0: the letters), whether what a token holds there can reach the last token of the last layer.

    A token reaches another when some head gives it a weight that can be seen; every token keeps what it has.
    """
    total = next((pattern.shape[-1] for pattern in patterns if pattern is not None), 1)
    reached = np.zeros(total, dtype=bool)
    reached[-1] = True
    found = [reached]
    for pattern in reversed(patterns):
        if pattern is not None:
            reached = reached | (pattern[:, reached] > _SEEN).any((0, 1))
        found.append(reached)
    return found[::-1]


def _patterns(model: TheoryTransformer, tokens: Tensor) -> list[np.ndarray | None]:
    names = [f"layers.{place}.attention.pattern" for place, heads in enumerate(model.config.heads) if heads]
    with record(model, *names) as cache, torch.no_grad():
        model(tokens.unsqueeze(0))
    places = [f"layers.{place}.attention.pattern" for place in range(model.config.layers)]
    return [cache[name][0].cpu().numpy() if name in names else None for name in places]


def _letters(machine: Automaton, tokens: Tensor) -> list[str]:
    return [machine.letters[token] for token in tokens.tolist()]


def _named(machine: Automaton, labels: Tensor) -> list[str]:
    """Labels as names of states where they are states."""
    plain = np.array_equal(machine.labels, np.arange(machine.states))
    return [machine.names_of_states[label] if plain else str(label) for label in labels.tolist()]


def _reader(model: TheoryTransformer, machine: Automaton) -> Reader:
    """What this kind of circuit holds, by the names of its channels."""
    names = model.config.channels
    maps = [name for name in names if name.startswith("map of ")]
    if maps:
        return lambda held: [_map(row) for row in np.stack([held[name] for name in maps], -1).round().astype(int) - 1]
    if "possible states" in names:
        return lambda held: [_set(machine, value) for value in held["possible states"]]
    codes = [name for name in names if re.fullmatch(r"code \d+", name)]
    if codes:
        return lambda held: [_map(row) for row in np.stack([held[name] for name in codes], -1).round().astype(int)]
    if "height 0" in names:
        total = 2 * (model.config.prefix - 1 + model.config.length)
        heights = [name for name in names if name.startswith("height ") and name.count(" ") == 1]
        return lambda held: [
            ",".join(str(round(float(value) * total)) for value in row)
            for row in np.stack([held[name] for name in heights], -1)
        ]
    output = int(model.readout.weight.detach().abs().sum(0).argmax())
    return lambda held: [f"{value:.3g}" for value in held[names[output]]]


def _map(row: Int[np.ndarray, "point"]) -> str:
    return "".join(map(str, row)) if len(row) <= 10 else " ".join(map(str, row))


def _set(machine: Automaton, value: float) -> str:
    """The set with that number, short; a label where the last layer has written one already."""
    sets, number = machine.decomposition.sets, round(float(value))
    if not 0 <= number < len(sets):
        return "·"
    inside = [machine.names_of_states[state] for state in np.flatnonzero(sets[number])]
    return "".join(inside) if len("".join(inside)) <= 8 else f"{inside[0]}…{inside[-1]}"


def _draw_lines(
    axis: Axes, pattern: np.ndarray | None, place: int, needed: Bool[np.ndarray, "token"], prefix: int
) -> None:
    """Lines to the tokens that were attended to; all anchors before the word share one place."""
    if pattern is None:
        return
    for head, weights in enumerate(pattern):
        for query in range(prefix, len(weights)):
            keys = np.flatnonzero(weights[query] > _SEEN)
            colour: Any = COLOURS[head % len(COLOURS)] if needed[query] else _QUIET
            for key in keys:
                x = float(key - prefix) if key >= prefix else -1.0
                look: dict[str, Any] = {"linewidth": 0.3 + 0.9 * float(weights[query, key]), "linestyle": "-"}
                look["label"] = f"{_STEP}{2 * place + 1}"
                axis.plot([x, query - prefix], [place, place + 1], color=colour, zorder=1 + needed[query], **look)
    if prefix:
        axis.text(-1.0, place, "before", ha="center", va="center", fontsize=7, color="#8a8d91")


def _draw_boxes(axis: Axes, texts: list[str], place: int, needed: Bool[np.ndarray, "letter"]) -> None:
    for position, text in enumerate(texts):
        edge = "#222222" if needed[position] else "#bbbbbb"
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": edge, "linewidth": 0.8}
        label = f"{_STEP}{2 * place}"
        axis.text(position, place, text, ha="center", va="center", fontsize=7.5, bbox=box, zorder=4, label=label)
