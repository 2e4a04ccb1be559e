"""Results as bytes and back without pickle: JSON for the structure, npz for arrays, safetensors for tensors."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab._fitting import Hint
from sandlab.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor
from sandlab.lab._store.plain import Json

__all__ = ["Payload", "decode", "encode"]

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Payload:
    """An encoded result: its structure as JSON text; its arrays as the bytes of an npz and of a safetensors file."""

    structure: str
    arrays: bytes = b""
    tensors: bytes = b""

    def __len__(self) -> int:
        return len(self.structure) + len(self.arrays) + len(self.tensors)


def encode(value: object) -> Payload:
    """Numbers, strings, bools, None, arrays and tensors in nested dicts, lists and tuples, as bytes."""
    arrays: dict[str, np.ndarray] = {}
    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_pack(value, "result", arrays, tensors))
    return Payload(structure, _npz(arrays), _safetensors(tensors))


def decode(payload: Payload, hint: object = object) -> Any:
    """What `encode` was given: same types, same digits; tensors are on the CPU.

    Dataclasses are stored as their fields; `hint`, the type that is expected, says which they were. Nothing that is
    written in the payload decides which code runs.
    """
    arrays: dict[str, np.ndarray | Tensor] = {}
    if payload.arrays:
        with np.load(io.BytesIO(payload.arrays), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    if payload.tensors:
        from safetensors.torch import load

        arrays |= load(payload.tensors)
    return _typed(hint, _unpack(json.loads(payload.structure), arrays))


def _pack(value: object, place: str, arrays: dict[str, np.ndarray], tensors: dict[str, Tensor]) -> Json:
    if isinstance(value, np.generic):
        arrays[name := f"a{len(arrays)}"] = _solid(np.asarray(value), place)
        return {"@scalar": name}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        arrays[name := f"a{len(arrays)}"] = _solid(value, place)
        return {"@array": name}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _pack_tensor(value, arrays, tensors)
    if isinstance(value, (list, tuple)):
        items = [_pack(item, f"{place}[{index}]", arrays, tensors) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"@tuple": items}
    if isinstance(value, dict):
        return _pack_dict(value, place, arrays, tensors)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        return _pack_dict(fields, place, arrays, tensors)
    raise BadInput(
        f"{place} is a {type(value).__name__}: a job returns numbers, strings, arrays, tensors, lists, dicts and "
        "dataclasses of them"
    )


def _pack_dict(
    value: Mapping[Any, object], place: str, arrays: dict[str, np.ndarray], tensors: dict[str, Tensor]
) -> Json:
    """A dict with ordinary string keys stays one; any other keys become a list of pairs."""
    if all(isinstance(key, str) and not key.startswith("@") for key in value):
        return {key: _pack(item, f"{place}[{key!r}]", arrays, tensors) for key, item in value.items()}
    pairs = [
        [_pack(key, f"a key of {place}", arrays, tensors), _pack(item, f"{place}[{key!r}]", arrays, tensors)]
        for key, item in value.items()
    ]
    return {"@pairs": pairs}


def _pack_tensor(value: Tensor, arrays: dict[str, np.ndarray], tensors: dict[str, Tensor]) -> Json:
    value = value.detach().cpu().contiguous()
    if value.is_complex():  # safetensors has no complex numbers of double precision
        arrays[name := f"a{len(arrays)}"] = value.numpy()
        return {"@complex": name}
    tensors[name := f"t{len(tensors)}"] = value
    return {"@tensor": name}


def _solid(value: np.ndarray, place: str) -> np.ndarray:
    if value.dtype.hasobject:
        raise BadInput(f"{place} is an array of objects: give it a number or string type")
    return value


def _unpack(value: Json, arrays: Mapping[str, np.ndarray | Tensor]) -> object:
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, body),) = value.items()
        if tag in ("@array", "@tensor"):
            return arrays[body]
        if tag == "@scalar":
            return arrays[body][()]
        if tag == "@complex":
            import torch

            return torch.from_numpy(arrays[body])
        if tag == "@tuple":
            return tuple(_unpack(item, arrays) for item in body)
        if tag == "@pairs":
            return {_unpack(key, arrays): _unpack(item, arrays) for key, item in body}
    return {key: _unpack(item, arrays) for key, item in value.items()}


def _typed(hint: Hint, value: object) -> Any:
    """The value as the expected type says: dictionaries of fields become dataclasses again, also inside containers."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return value if value is None else _typed(_only(inside), value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        return hint(**{name: _typed(hints.get(name, object), item) for name, item in value.items()})
    if isinstance(value, (list, tuple)) and inside and origin in (list, tuple, Sequence, Iterable):
        fixed = origin is tuple and inside[-1] is not Ellipsis
        kinds = inside if fixed else (inside[0],) * len(value)
        return type(value)(_typed(kind, item) for kind, item in zip(kinds, value))
    if isinstance(value, dict) and len(inside) == 2 and origin in (dict, Mapping):
        return {_typed(inside[0], key): _typed(inside[1], item) for key, item in value.items()}
    return value


def _only(options: tuple[Hint, ...]) -> Hint:
    """The one dataclass or container among the options of a union; nothing is guessed where there are several."""
    structured = [each for each in options if dataclasses.is_dataclass(each) or typing.get_origin(each) is not None]
    return structured[0] if len(structured) == 1 else object


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    if not arrays:
        return b""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _safetensors(tensors: dict[str, Tensor]) -> bytes:
    if not tensors:
        return b""
    from safetensors.torch import save

    # Tensors that share memory are refused by the format: each gets its own.
    return save({name: tensor.clone() for name, tensor in _in_order(tensors)})


def _in_order(tensors: dict[str, Tensor]) -> Iterable[tuple[str, Tensor]]:
    return sorted(tensors.items())
