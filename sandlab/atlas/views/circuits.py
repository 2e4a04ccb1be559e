"""What the circuit page shows: a machine, its compiled model, and every layer at work on a word."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sandlab.errors import BadInput, integer, number
from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sandlab.models.base import Model
    from sandlab.worlds.automata.machine import Automaton

__all__ = ["circuit"]

MOST_LENGTH, MOST_STATES, MOST_CELLS = 256, 64, 6000


def circuit(
    machine: str,
    word: str = "",
    length: int = 32,
    method: str = "auto",
    bits: int | None = None,
    off: str = "",
    temperature: float = 1.0,
) -> Facts:
    """A machine compiled into a transformer, and what each layer reads on a word.

    bits          fractional bits of weights and activations (None: all)
    off           a head "layer.head" whose attention is removed
    temperature   scores of all heads are divided by it
    """
    import torch

    from sandlab.circuits.automata.compiler import compile
    from sandlab.cli.circuits import _algebra
    from sandlab.worlds.automata.reading import read_machine

    integer("length", length, low=1, high=MOST_LENGTH)
    if machine.strip().endswith(".json"):
        raise BadInput("paste the table itself: a page opens no files")
    made = read_machine(machine)
    if len(made.names_of_states) > 4 * MOST_STATES:
        raise BadInput(f"at most {4 * MOST_STATES} states on this page, got {len(made.names_of_states)}")
    model = compile(made, length, method)
    found: Facts = {
        "states": made.names_of_states,
        "letters": made.letters,
        "start": int(getattr(made, "start", 0) or 0),
        "transitions": _table(made),
        "algebra": _algebra(made),
        "note": getattr(model.config, "note", ""),
        "parameters": model.parameter_count(),
        "channels": list(getattr(model.config, "channels", ())),
        "code": f"model = sl.circuits.compile({machine!r}, {length}, {method!r})",
    }
    tokens = made.read_text(word)[:length] if word else torch.randint(made.alphabet, (min(length, 12),))
    return found | _computation(made, model, tokens, bits, off, temperature)


def _table(made: Automaton) -> list[list[int]]:
    """Next state of each state (row) and letter (column), for drawing; nothing for large machines."""
    import torch

    states = len(made.names_of_states)
    if states > MOST_STATES or not hasattr(made, "table"):
        return []
    table = torch.as_tensor(made.table)
    rows: list[list[int]] = table.tolist() if table.shape[0] == states else table.T.tolist()
    return rows


def _computation(
    made: Automaton, model: Model, tokens: Tensor, bits: int | None, off: str, temperature: float
) -> Facts:
    import torch

    from sandlab.models.hooks import record

    truth = torch.as_tensor(made.labels)[made.run(tokens.unsqueeze(0))][0].tolist()
    with _changed(model, bits, off, temperature) as changed, torch.no_grad(), record(changed, "*") as cache:
        answers = changed(tokens.unsqueeze(0)).argmax(-1)[0].tolist()
        patterns = [
            {"name": name, "heads": [_rounded(head, 4) for head in cache[name][0]]}
            for name in cache
            if name.endswith("attention.pattern")
        ]
        streams = [
            {"name": name, "rows": _rounded(cache[name][0].T, 3)}
            for name in cache
            if (name == "embed" or name.endswith("resid_post")) and cache[name][0].numel() <= MOST_CELLS
        ]
    right = sum(a == b for a, b in zip(answers, truth)) / max(1, len(truth))
    facts = {"word": tokens.tolist(), "answers": answers, "truth": truth, "right": right}
    return {**facts, "layers": patterns, "streams": streams}


@contextlib.contextmanager
def _changed(model: nn.Module, bits: int | None, off: str, temperature: float) -> Iterator[nn.Module]:
    """The model with fewer bits, without a head, at another temperature."""
    from sandlab.circuits.precision import rounded
    from sandlab.models.hooks import patch

    number("temperature", temperature, low=1e-3, high=1e9)
    changes = _without(off)
    if temperature != 1.0:
        names = [name for name, _ in model.named_modules() if name.endswith("attention.scores")]
        if not names:
            raise BadInput("this construction has no attention, hence no temperature")
        changes |= {name: lambda scores: scores / temperature for name in names}
    with contextlib.ExitStack() as stack:
        if bits is not None:
            model = stack.enter_context(rounded(model, integer("bits", bits, low=0, high=40)))
        if changes:
            stack.enter_context(patch(model, changes))
        yield model


def _without(off: str) -> dict[str, Callable[[Tensor], Tensor]]:
    """The patch that removes one head's attention."""
    if not off:
        return {}
    layer, _, head = off.partition(".")
    if not (layer.isdecimal() and head.isdecimal() and len(off) < 10):
        raise BadInput(f"a head is written layer.head, such as 0.1, got {off!r}")

    def remove(pattern: Tensor) -> Tensor:
        if int(head) >= pattern.shape[-3]:
            raise BadInput(f"there is no head {int(head) + 1} in layer {int(layer) + 1}")
        changed = pattern.clone()
        changed[..., int(head), :, :] = 0.0
        return changed

    return {f"layers.{int(layer)}.attention.pattern": remove}


def _rounded(table: Tensor, digits: int) -> list[list[float]]:
    return [[round(value, digits) for value in row] for row in table.tolist()]
