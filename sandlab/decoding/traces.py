"""What happened to a string while it was decoded, as a picture: every token from its writing to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandlab import figures
from sandlab.decoding._session.session import Event

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["Lifetime", "draw_trace", "lifetimes"]

KINDS = {
    "sampled": (figures.COLOURS[5], "sampled"),
    "argmax": (figures.COLOURS[3], "the likeliest"),
    "tried": (figures.COLOURS[4], "tried"),
    "restored": (figures.COLOURS[2], "put back"),
}
_LETTERS_AT_MOST = 90


@dataclass(frozen=True)
class Lifetime:
    """A token at a position of the string, from the event that wrote it to the one that erased it (or the last)."""

    position: int
    token: int
    kind: str
    begin: int
    end: int
    erased: bool
    rejected: bool


def lifetimes(events: Sequence[Event]) -> list[Lifetime]:
    """Every token that was ever written, in the order of writing. Events that write or erase tokens are counted."""
    found: list[Lifetime] = []
    alive: list[tuple[Event, int]] = []
    time, refused = 0, False
    for event in events:
        if event.kind == "rejected":
            refused = True
            continue
        if event.kind == "erased":
            # A prompt that is cut into has tokens nobody wrote.
            if alive:
                born, begin = alive.pop()
                found.append(Lifetime(born.position, born.token, born.kind, begin, time, True, refused))
        else:
            alive.append((event, time))
        refused = False
        time += 1
    found += [Lifetime(born.position, born.token, born.kind, begin, time, False, False) for born, begin in alive]
    return sorted(found, key=lambda each: each.begin)


def draw_trace(axis: Axes, events: Sequence[Event], *, letter: Callable[[int], str] = str) -> None:
    """Each token as a bar at its position, from the moment it is written to the moment it is erased.

    Tokens that stay reach the right edge. A red end: the verifier rejected the string that ended in this token.
    """
    lives = lifetimes(events)
    with figures.style():
        for each in lives:
            colour = KINDS.get(each.kind, ("#888888", ""))[0]
            faint = 0.35 if each.erased else 1.0
            shown: dict[str, Any] = {"height": 0.8, "color": colour, "alpha": faint, "linewidth": 0}
            axis.barh(each.position, each.end - each.begin, left=each.begin, **shown)
            if each.rejected:
                axis.plot([each.end] * 2, [each.position - 0.4, each.position + 0.4], "-", color=figures.COLOURS[1])
            if len(lives) <= _LETTERS_AT_MOST:
                axis.text(each.begin + 0.25, each.position, letter(each.token), va="center", fontsize=8)
        axis.set(xlabel="tokens written and taken back so far", ylabel="position in the string")
        axis.margins(x=0.01)
        axis.legend(handles=_legend(lives), loc="upper left", bbox_to_anchor=(0, -0.2), ncols=4, fontsize=8)
        axis.locator_params(integer=True)


def _legend(lives: Sequence[Lifetime]) -> list[Artist]:
    """What there is to see, and nothing else."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Patch(color=colour, label=name)
        for kind, (colour, name) in KINDS.items()
        if any(each.kind == kind for each in lives)
    ]
    if any(each.erased for each in lives):
        handles.append(Patch(color="#888888", alpha=0.35, label="taken back"))
    if any(each.rejected for each in lives):
        handles.append(Line2D([], [], color=figures.COLOURS[1], label="rejected"))
    return handles
