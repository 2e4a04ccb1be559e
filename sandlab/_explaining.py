"""Which argument is to blame for what went wrong inside a function, and the sentence that says so."""

from __future__ import annotations

import traceback
import types
import typing
from collections.abc import Iterable, Iterator, Mapping

from sandlab._fitting import TYPES, Hint, Plan, fits, is_open, is_plain, refusal
from sandlab._memory import NO_ROOM, size_in
from sandlab.errors import BadInput, shown

__all__ = ["explain"]

# Functions that read a file which may come from elsewhere, and their variable that says which.
_READERS = {
    ("sandlab.learning._engine.checkpoints", "restore"): "path",
    ("sandlab.models.io", "load"): "folder",
}


def explain(problem: Exception, name: str, plan: Plan, given: Mapping[str, object], values: bool) -> None:
    """Say which argument is to blame, if it can be told; a bug inside stays the error that it is."""
    for field, hint, _ in plan:
        if field in given and not fits(hint, given[field]):
            raise BadInput(refusal(field, hint, given[field])) from problem
        kind = given.get(field)
        if isinstance(kind, (type, types.BuiltinFunctionType)) and kind.__module__ == "builtins":
            word = "class" if isinstance(kind, type) else "function"
            raise BadInput(f"{field} cannot be the {word} {kind.__name__}") from problem
    if file := _file_being_read(problem):
        reason = str(problem).partition("\n")[0][:200] or type(problem).__name__
        raise BadInput(f"{file} does not have the form in which it is written ({reason}): write it anew") from problem
    text, own = str(problem), type(problem).__module__.partition(".")[0] not in ("builtins", "numpy")
    # A GPU's errors say themselves what they are, and recording a step relies on them.
    if own or isinstance(problem, NotImplementedError) or "CUDA" in text:
        return
    if isinstance(problem, (MemoryError, RecursionError)) or any(words in text for words in NO_ROOM):
        raise BadInput(f"{name} with {_listed(given)} is too large for this machine{size_in(text)}") from problem
    if given_back := _no_logits(problem):
        raise BadInput(
            f"{name} needs a model that returns logits (batch, time, vocabulary), got {given_back}"
        ) from problem
    if isinstance(problem, (TypeError, AttributeError)) and (field := _misled_by(problem, given)):
        raise BadInput(f"{name} cannot work with what {field} returns: {text.partition(chr(10))[0][:200]}") from problem
    hints = {field: hint for field, hint, _ in plan if field in given and field != "self"}
    if values and isinstance(problem, AttributeError) and (field := _lacking(problem, hints, given)):
        raise BadInput(f"{name} cannot work with this {field}: {text}") from problem
    # A number of numpy's is no `int` for isinstance: what takes one number or several takes it for several.
    unseen = any(_unseen(hint, given[field]) or _is_numpy(given[field]) for field, hint in hints.items())
    # Where every argument is of its type, an error of types is ours; without arguments, every error is.
    if values and set(given) - {"self", "rng"} and (unseen or not isinstance(problem, TYPES)):
        raise BadInput(f"{name} cannot work with {_listed(given)}: {(text.splitlines() or [''])[0][:200]}") from problem


def _no_logits(problem: Exception) -> str:
    """What a model returned, where our code then went wrong with it: no tensor, or too few positions."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    ours = [frame.f_locals for frame in frames if frame.f_globals.get("__name__", "").startswith("sandlab.")]
    here = ours[-1] if ours else {}
    found: object = here.get("logits", problem)
    if isinstance(problem, AttributeError) and problem.name == "log_softmax":
        found = problem.obj
    if isinstance(problem, (TypeError, AttributeError)):
        return "" if found is problem or hasattr(found, "shape") else f"a {type(found).__name__}"
    shape, wanted = getattr(found, "shape", ()), getattr(getattr(here.get("batch"), "mask", None), "shape", ())
    short = len(shape) == 3 and len(wanted) and shape[1] < wanted[-1]
    return f"{tuple(shape)} for {wanted[-1]} positions" if short else ""


def _misled_by(problem: Exception, given: Mapping[str, object]) -> str:
    """The argument that is a function of the user's, ended well, and stands where our code then went wrong."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    ours = [frame for frame in frames if frame.f_globals.get("__name__", "").startswith("sandlab.")]
    codes = {frame.f_code for frame in frames}
    near = list(_within(ours[-1].f_locals.values())) if ours else []
    for field, value in given.items():
        own = isinstance(value, types.FunctionType) and not value.__module__.startswith("sandlab.")
        if own and value.__code__ not in codes and any(each is value for each in near):  # type: ignore[attr-defined]
            return field
    return ""


def _within(values: Iterable[object], depth: int = 2) -> Iterator[object]:
    """The values, and what their attributes hold."""
    for value in values:
        yield value
        if depth and not isinstance(value, types.ModuleType):
            yield from _within(getattr(value, "__dict__", {}).values(), depth - 1)


def _file_being_read(problem: Exception) -> str:
    """The file, with right checksums perhaps and wrong contents, whose reader did not expect what it found."""
    trace = problem.__traceback__
    while trace is not None:
        reader = trace.tb_frame.f_globals.get("__name__"), trace.tb_frame.f_code.co_name
        if reader in _READERS:
            return shown(str(trace.tb_frame.f_locals.get(_READERS[reader])))
        trace = trace.tb_next
    return ""


def _lacking(problem: AttributeError, hints: dict[str, Hint], given: Mapping[str, object]) -> str:
    """The argument that lacks an attribute, where its annotation allows more kinds of things than the code can use."""
    if problem.name is None:  # raised by hand: it does not say whose attribute it is
        return ""
    kept = vars(given["self"]) if hasattr(given.get("self"), "__dict__") else {}
    for field, value in {**kept, **given}.items():
        hint = hints.get(field, object)
        wider = _unseen(hint, value) or (type(value) is not hint and not is_plain(value))
        if wider and value is problem.obj and field != "self":
            return field
    return ""


def _unseen(hint: Hint, value: object) -> bool:
    """Whether `fits` could not look into a plain value: nothing is said of it, or it stands in place of a list."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return all(_unseen(option, value) for option in inside if fits(option, value))
    if origin is not None and isinstance(value, (list, tuple)):
        kinds = inside[:1] * len(value) if Ellipsis in inside or len(inside) == 1 else inside
        return any(map(_unseen, kinds, value))
    rows = callable(value) or (hasattr(value, "__iter__") and not isinstance(value, (str, bytes, Mapping)))
    return is_plain(value) and (is_open(hint) if origin is None else rows)


def _is_numpy(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "ndim", None) == 0


def _listed(given: Mapping[str, object]) -> str:
    words = [f"{name}={shown(value)[:60]}" for name, value in given.items() if name not in ("self", "rng")]
    return ", ".join(words[:6]) or "these arguments"
