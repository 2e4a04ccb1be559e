"""The door: one validator that reads what is allowed from the annotations, for everything that users call.

`@checked` refuses at once arguments that the signature does not have, flags that are not flags and numbers that are not
numbers. What goes wrong further inside is explained by the first argument that does not fit its annotation. What no
memory can hold is refused with the number of bytes.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import errno
import functools
import inspect
import io
import math
import os
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sandlab._fitting import PLAIN, Hint, fits, in_words, is_open, is_simple
from sandlab.errors import BadInput, nearest, shown

__all__ = ["available_bytes", "checked", "checked_types", "fits", "in_words", "refuse_beyond_memory", "sized"]

Thing = TypeVar("Thing")
Function: TypeAlias = Callable[..., Any]
Plan: TypeAlias = list[tuple[str, Hint, bool]]  # a parameter, its annotation, and whether that is a plain one
_VALUES = (ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError, MemoryError, UnicodeError)
_TYPES = (TypeError, AttributeError, KeyError, AssertionError, NotImplementedError)
_PLAIN_MODULES = ("builtins", "numpy", "torch", "decimal", "fractions", "_io")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
# Functions that read a file which may come from elsewhere, and their variable that says which.
_READERS = {
    ("sandlab.learning._engine.checkpoints", "restore"): "path",
    ("sandlab.models.io", "load"): "folder",
}
# Sizes of which everything is made one by one, at some length.
_SMALL = ("positions", "heads", "types", "clauses", "hops", "order", "squarings", "topics", "blocks", "passes")
# Of lenses: how often something is drawn, tried or gone through.
_REPEATED = (
    *("angles", "chains", "directions", "draws", "epochs", "points", "prompts", "radii", "restarts", "shells"),
    *("starts", "test", "train"),
)
# Formulas that are computed for every length up to the given one.
_BY_LENGTH = ("dilution_bounds",)
# Circuits with a layer for each letter.
_BY_LAYER = ("sequential_circuit",)
_MOST_PASSES = 2**12  # of a total that is computed chunk by chunk
_BYTES = re.compile(r"allocate (?:memory: you tried to allocate )?(\d+) bytes")
_NO_ROOM = (
    "can't allocate memory",
    "out of memory",
    "Storage size calculation",
    "Unable to allocate",
    "Maximum allowed",
)


def checked(thing: Thing) -> Thing:
    """A function, or a class by its constructor, whose arguments are checked against their annotations."""
    return _checked(thing, values=True)


def checked_types(thing: Thing) -> Thing:
    """The same for what runs code of the user (models, callbacks): errors of values stay what they are."""
    return _checked(thing, values=False)


def _checked(thing: Thing, values: bool) -> Thing:
    if isinstance(thing, type):
        init = thing.__init__
        if not getattr(init, "__checked__", False) and init is not object.__init__:
            thing.__init__ = _guard(init, thing.__name__, skip=1, owner=thing, values=values)
        return thing
    return _guard(thing, thing.__name__, values=values) if isinstance(thing, types.FunctionType) else thing  # type: ignore[return-value]


def _guard(function: Function, name: str, skip: int = 0, owner: type | None = None, values: bool = True) -> Function:
    signature = inspect.signature(function)
    plan: Plan = []
    most: dict[str, int] = {}

    @functools.wraps(function)
    def call(*args: object, **options: object) -> object:
        if not plan:
            hints = _hints(function, owner)
            plan.extend((each, hints.get(each, Any), is_simple(hints.get(each, Any))) for each in signature.parameters)
            most.update(_limits(function, name, owner, hints))
        given = _bind(signature, name, skip, args, options)
        for field, hint, simple in plan[skip:]:
            if simple and field in given and not fits(hint, given[field]):
                raise BadInput(_refusal(field, hint, given[field]))
            if field in most and type(given.get(field)) is int and given[field] > most[field]:
                raise BadInput(f"{field} must be at most {most[field]}, got {shown(given[field])}")
        if "chunk" in signature.parameters:
            _refuse_crumbs(signature, given)
        try:
            answer = function(*args, **options)
        except BadInput as problem:
            told = _without_dumps(str(problem), given)
            if told != str(problem):
                raise BadInput(told) from problem
            raise
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise BadInput(f"{name}: no file has so long a name, got {shown(problem.filename)[:80]}") from problem
            if (
                values and type(problem) is OSError and problem.errno is None
            ):  # not the machine's: a library did not like what it found in a file
                raise BadInput(f"{name}: {str(problem).partition(chr(10))[0][:200]}") from problem
            raise
        except (*_VALUES, *_TYPES) as problem:
            _explain(problem, name, plan[skip:], given, values)
            raise
        if owner is not None:
            _refuse_strangers(plan[skip:], given)
        return answer

    call.__checked__ = True  # type: ignore[attr-defined]
    return call


def _limits(function: Function, name: str, owner: type | None, hints: Mapping[str, Hint]) -> dict[str, int]:
    """The largest whole numbers that are let through.

    Circuits are written out and sequences drawn by position, machines by state: what is far too large is refused before
    that begins. (How many bytes a model needs is known, and said, by `sized`; formulas take any length.)
    """
    module = function.__module__ if owner is None else owner.__module__
    written = module.startswith("sandlab.circuits.")
    drawn = module.startswith("sandlab.worlds.") and owner is not None and dataclasses.is_dataclass(owner)
    whole = [
        field for field, hint in hints.items() if hint in (int, int | None) and not re.search("seed|secret", field)
    ]
    most = dict.fromkeys(whole, 2**22) if written or drawn else {}
    formula = module.startswith("sandlab.lenses.") and name not in _BY_LENGTH
    most |= dict.fromkeys(_REPEATED, 2**22) if formula else {}
    most |= {} if name.endswith("Config") or formula else {"length": 2**22, "steps": 2**26}
    most |= {"length": 2**12} if name in _BY_LAYER else {}
    most |= {} if "chunk" in hints else {"examples": 2**22}  # all at once
    return most | {"depth": min(2**26, most.get("depth", 2**26))} | dict.fromkeys(_SMALL, 2**16)


def _refuse_crumbs(signature: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Refuse chunks so small that the examples, or the targets in them, take thousands of passes."""
    default = {field: each.default for field, each in signature.parameters.items()}
    chunk = given.get("chunk", default["chunk"])
    for field in default.keys() & {"examples", "targets"}:
        total = given.get(field, default[field])
        length = getattr(given.get("world"), "length", 1) if field == "targets" else 1
        if all(type(each) is int and each > 0 for each in (total, chunk, length)):
            least = -(-total // (_MOST_PASSES * length))
            if chunk < least:
                small = f"chunk must be at least {least} for {total} {field}, got {chunk}"
                raise BadInput(f"{small}: every chunk is a pass of its own")


def _refuse_strangers(plan: Plan, given: Mapping[str, object]) -> None:
    """Refuse what a constructor only stores and its annotation excludes: numbers, words and the like.

    Lists and arrays are for the constructor to judge; objects of one's own classes may behave like what is asked for.
    """
    for field, hint, simple in plan:
        value = given.get(field)
        whole = isinstance(value, (list, tuple, dict, set, frozenset, range)) or getattr(value, "ndim", 0) > 0
        named = isinstance(value, dict) and not fits(hint, {})
        a_row = whole and not named and _takes_rows(hint) and not _holds_strangers(hint, value)
        # Classes and callable objects may stand for much; Python's own classes cannot, and for a word nothing else.
        own = isinstance(value, type) and value.__module__ == "builtins"
        judged = not a_row and (hint is str or own or not callable(value) or isinstance(value, _FUNCTIONS))
        odd = isinstance(value, (set, frozenset, io.IOBase)) and not _is_any_row(hint)
        odd = odd or (whole and hasattr(value, "dtype") and _takes_rows(hint) and _holds_strangers(hint, value))
        if not simple and field in given and _is_plain(value) and (odd or (judged and not fits(hint, value))):
            raise BadInput(_refusal(field, hint, value))


def _is_any_row(hint: Hint) -> bool:
    """Whether an annotation leaves open in which order, or from where, items come."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(_is_any_row, typing.get_args(hint)))
    unordered = (set, frozenset, collections.abc.Set, collections.abc.Iterable, collections.abc.Collection)
    return hint in (Any, object, *unordered) or typing.get_origin(hint) in unordered


def _holds_strangers(hint: Hint, value: object) -> bool:
    """Whether a row that should hold numbers holds what no constructor makes a number of: None, a word, other rows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rows = [each for each in typing.get_args(hint) if _takes_rows(each)]
        return bool(rows) and all(_holds_strangers(each, value) for each in rows)
    kinds = [kind for kind in typing.get_args(hint) if kind is not Ellipsis]
    dtype = str(getattr(value, "dtype", "int"))
    if kinds and all(typing.get_origin(kind) in (tuple, list) for kind in kinds):
        return "int" not in dtype and "float" not in dtype
    if typing.get_origin(hint) not in (tuple, list) or not all(map(is_simple, kinds)):
        return False
    if isinstance(value, (list, tuple)):
        return any(item is None or isinstance(item, (str, bytes, list, tuple, dict, set)) for item in value)
    numbers = "int" in dtype or ("float" in dtype and set(kinds) != {int}) or ("bool" in dtype and bool in kinds)
    return getattr(value, "ndim", 1) != 1 or not numbers


def _takes_rows(hint: Hint) -> bool:
    """Whether an annotation speaks of lists, dictionaries or arrays."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_takes_rows(option) for option in typing.get_args(hint))
    arrays = getattr(hint, "__name__", "") in ("Tensor", "ndarray") or hasattr(hint, "dims")
    return arrays or typing.get_origin(hint) is not None or hint in (tuple, list, dict, set)


def _bind(
    signature: inspect.Signature, name: str, skip: int, args: tuple[object, ...], options: dict[str, object]
) -> dict[str, Any]:
    try:
        return signature.bind(*args, **options).arguments
    except TypeError as problem:
        known = list(signature.parameters)[skip:]
        for each in options:
            if each not in known:
                hint = nearest(each, known) or f"it has {', '.join(known)}"
                raise BadInput(f"{name} has no option {each!r}: {hint}") from None
        raise BadInput(f"{name}: {problem}") from None


def _explain(problem: Exception, name: str, plan: Plan, given: Mapping[str, object], values: bool) -> None:
    """Say which argument is to blame, if it can be told; a bug inside stays the error that it is."""
    for field, hint, _ in plan:
        if field in given and not fits(hint, given[field]):
            raise BadInput(_refusal(field, hint, given[field])) from problem
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
    if isinstance(problem, (MemoryError, RecursionError)) or any(words in text for words in _NO_ROOM):
        raise BadInput(f"{name} with {_listed(given)} is too large for this machine{_size_in(text)}") from problem
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
    if values and set(given) - {"self", "rng"} and (unseen or not isinstance(problem, _TYPES)):
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


def _without_dumps(text: str, given: Mapping[str, object]) -> str:
    """A refusal in which an argument that fills several lines (a module) is named by its class."""
    if "\n" in text:
        for value in given.values():
            text = text.replace(repr(value), f"a {type(value).__name__}") if "\n" in repr(value) else text
    return text


def _lacking(problem: AttributeError, hints: dict[str, Hint], given: Mapping[str, object]) -> str:
    """The argument that lacks an attribute, where its annotation allows more kinds of things than the code can use."""
    if problem.name is None:  # raised by hand: it does not say whose attribute it is
        return ""
    kept = vars(given["self"]) if hasattr(given.get("self"), "__dict__") else {}
    for field, value in {**kept, **given}.items():
        hint = hints.get(field, object)
        wider = _unseen(hint, value) or (type(value) is not hint and not _is_plain(value))
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
    return _is_plain(value) and (is_open(hint) if origin is None else rows)


def _is_numpy(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "ndim", None) == 0


def _is_plain(value: object) -> bool:
    """Whether a value is a number, a word, a list, an array or the like: not of a class of ours or of the user's."""
    return type(value).__module__.partition(".")[0] in _PLAIN_MODULES


def _size_in(text: str) -> str:
    found = _BYTES.search(text)
    size = f"{int(found[1]):,} bytes" if found else text.splitlines()[0][:120] if text else ""
    return f": it needs {size}" if found else f" ({size})" if size else ""


def _listed(given: Mapping[str, object]) -> str:
    words = [f"{name}={shown(value)[:60]}" for name, value in given.items() if name not in ("self", "rng")]
    return ", ".join(words[:6]) or "these arguments"


@contextmanager
def sized(name: str, most: int | None = None) -> Iterator[None]:
    """Refuse tensors of more than `most` bytes (None: than are free) before they are made."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __torch_function__(self, call: Function, kinds: object, args: Any = (), options: Any = None) -> object:
            if getattr(call, "__name__", "") in _MAKERS:
                refuse_beyond_memory(name, 4 * _count(args, options or {}), most)
            return call(*args, **(options or {}))

    try:
        with Watch():
            yield
    except (RuntimeError, MemoryError, OverflowError) as problem:
        text = str(problem)
        if isinstance(problem, MemoryError) or any(words in text for words in _NO_ROOM):  # small each, large together
            raise BadInput(f"{name} is too large for this machine{_size_in(text)}") from problem
        if isinstance(problem, NotImplementedError) or "CUDA" in text:
            raise
        raise BadInput(f"{name} cannot be made with these options: {(text.splitlines() or [''])[0][:200]}") from problem


def refuse_beyond_memory(name: str, size: float, most: int | None = None) -> None:
    """Refuse what needs more bytes than the machine has free, or than `most`."""
    if most is not None and size > most:
        raise BadInput(f"{name} needs {size:,.0f} bytes, and no more than {most:,} are expected")
    if size >= 2**28 and size > (free := available_bytes()):
        raise BadInput(f"{name} needs {size:,.0f} bytes, and {free:,} are free: take smaller sizes")


def available_bytes() -> int:
    """Memory of this machine that is free, or what the process may still take."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/meminfo", encoding="utf-8") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
        return min(free, limit) if limit > 0 else free
    except (OSError, StopIteration, ImportError):  # not Linux
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


_MAKERS = {"empty", "zeros", "ones", "full", "rand", "randn", "randint", "eye", "tril", "triu"}


def _count(args: Sequence[object], options: Mapping[str, object]) -> float:
    """Elements of the tensor that a factory is asked for."""
    sizes = options.get("size", args[0] if args and isinstance(args[0], (tuple, list)) else args)
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    numbers = [float(size) for size in sizes if isinstance(size, int)]
    return math.prod(numbers) if numbers else 0.0


def _refusal(field: str, hint: Hint, value: object) -> str:
    kind = f"{type(value).__name__} " if isinstance(hint, type) and hint not in PLAIN else ""
    text = f"{field} must be {in_words(hint)}, got {kind}{shown(value)}"
    if isinstance(value, (str, Path)) and Path in (hint, *typing.get_args(hint)):
        return f"{text}: the names of files have at most 255 bytes, paths at most 4095, and no control characters"
    generator = getattr(hint, "__name__", "") == "Generator"
    if hint is float and type(value) is int:
        return f"{text}: so large a number is written as {float(value):g}" if abs(value) < 10**308 else text
    return text + (": use rng=sl.rng(0)" if generator else "")


def _hints(function: Function, owner: type | None) -> dict[str, Hint]:
    """Parameter → annotation; one that cannot be resolved (names imported for type checkers alone) allows anything."""
    found: dict[str, Hint] = {}
    if owner is not None and dataclasses.is_dataclass(owner):
        for kind in reversed(owner.__mro__):
            found |= _resolved(inspect.get_annotations(kind), vars(sys.modules[kind.__module__]))
        return found
    inner = inspect.unwrap(function)
    return _resolved(getattr(inner, "__annotations__", {}), getattr(inner, "__globals__", {}))


def _resolved(annotations: Mapping[str, object], names: dict[str, object]) -> dict[str, Hint]:
    found: dict[str, Hint] = {}
    for field, annotation in annotations.items():
        holder = types.SimpleNamespace(__annotations__={field: annotation})
        try:
            # Many files import torch for type checkers alone.
            found |= typing.get_type_hints(holder, globalns={"torch": sys.modules.get("torch"), **names})
        except Exception:
            found[field] = Any
    return found
