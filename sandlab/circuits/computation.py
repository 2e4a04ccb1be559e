"""A circuit drawn as the computation it performs: what each position holds after each layer, and what it read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.circuits.drawing import attention_patterns, trace
from sandlab.errors import BadInput
from sandlab.figures import COLOURS, new, style
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.worlds.automata.machine import Automaton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["animate_computation", "draw_computation", "reading_paths"]

MOST_LETTERS = 24
# Softmax leaves smaller weights on positions that do not matter; an average over a short word gives more to each.
_SEEN = 0.01
_QUIET = "#c9c9c9"
# Labels of artists say when they appear: letters at step 0, lines into layer n at 2n − 1, its boxes at 2n. Legends
# leave out labels that begin with an underscore.
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
    """Positions from left to right, layers from bottom to top: boxes say what is held, lines what was attended to.

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
    patterns = attention_patterns(model, tokens)
    needed = reading_paths(patterns)
    width = max(0.5, 0.1 + 0.066 * max(len(text) for row in texts for text in row))
    with style():
        _, (axis,) = new(width=1.2 + width * (len(tokens) + 1), height=0.8 + 0.62 * layers)
        for depth, pattern in enumerate(patterns):
            _draw_lines(axis, pattern, depth, needed[depth + 1], prefix)
        for depth, row in enumerate(texts):
            _draw_boxes(axis, row, depth, needed[depth][prefix:])
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
    """An animation of `draw_computation`: letters first, then for each layer what is read and what results.

    Save it with `sandlab.figures.save_film(film, "scan.gif", fps=1)`.
    """
    from matplotlib.animation import FuncAnimation

    figure = draw_computation(model, machine, word, title=title)
    (axis,) = figure.axes
    labels: dict[Artist, str] = {artist: str(artist.get_label()) for artist in [*axis.lines, *axis.texts]}
    steps = {artist: int(label.removeprefix(_STEP)) for artist, label in labels.items() if label.startswith(_STEP)}

    def show(frame: int) -> list[Artist]:
        for artist, step in steps.items():
            artist.set_visible(step <= frame)
        return list(steps)

    return FuncAnimation(figure, show, frames=2 * model.config.layers + 2, blit=False)


def reading_paths(patterns: Sequence[Float[np.ndarray, "_head query key"] | None]) -> list[Bool[np.ndarray, "token"]]:
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
    axis: Axes, pattern: np.ndarray | None, depth: int, needed: Bool[np.ndarray, "token"], prefix: int
) -> None:
    """Lines to the tokens that were attended to; all anchors before the word share one point."""
    if pattern is None:
        return
    label = f"{_STEP}{2 * depth + 1}"
    for head, weights in enumerate(pattern):
        for query in range(prefix, len(weights)):
            colour = COLOURS[head % len(COLOURS)] if needed[query] else _QUIET
            for key in np.flatnonzero(weights[query] > _SEEN):
                x = (max(float(key - prefix), -1.0), float(query - prefix))
                width, above = 0.3 + 0.9 * float(weights[query, key]), 1 + int(needed[query])
                axis.plot(x, (depth, depth + 1), "-", color=colour, linewidth=width, zorder=above, label=label)
    if prefix:
        axis.text(-1.0, depth, "before", ha="center", va="center", fontsize=7, color="#8a8d91")


def _draw_boxes(axis: Axes, texts: list[str], depth: int, needed: Bool[np.ndarray, "letter"]) -> None:
    for position, text in enumerate(texts):
        edge = "#222222" if needed[position] else "#bbbbbb"
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": edge, "linewidth": 0.8}
        label = f"{_STEP}{2 * depth}"
        axis.text(position, depth, text, ha="center", va="center", fontsize=7.5, bbox=box, zorder=4, label=label)
