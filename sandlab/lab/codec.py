"""Results as bytes and back without pickle: JSON for the structure, npz for arrays, safetensors for tensors."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab.errors import BadInput

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


def encode(value: Any) -> Payload:
    """Numbers, strings, bools, None, arrays and tensors in nested dicts, lists and tuples, as bytes."""
    arrays: dict[str, np.ndarray] = {}
    tensors: dict[str, Any] = {}
    structure = json.dumps(_pack(value, "result", arrays, tensors))
    return Payload(structure, _npz(arrays), _safetensors(tensors))


def decode(payload: Payload) -> Any:
    """What `encode` was given: same types, same digits; tensors are on the CPU."""
    arrays: dict[str, Any] = {}
    if payload.arrays:
        with np.load(io.BytesIO(payload.arrays), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    if payload.tensors:
        from safetensors.torch import load

        arrays |= load(payload.tensors)
    return _unpack(json.loads(payload.structure), arrays)


def _pack(value: Any, place: str, arrays: dict[str, np.ndarray], tensors: dict[str, Any]) -> Any:
    if isinstance(value, np.generic):
        arrays[name := f"a{len(arrays)}"] = _solid(np.asarray(value), place)
        return {"@scalar": name}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        arrays[name := f"a{len(arrays)}"] = _solid(value, place)
        return {"@array": name}
    if type(value).__module__.startswith("torch") and hasattr(value, "detach"):
        return _pack_tensor(value, arrays, tensors)
    if isinstance(value, (list, tuple)):
        items = [_pack(item, f"{place}[{index}]", arrays, tensors) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"@tuple": items}
    if isinstance(value, dict):
        return _pack_dict(value, place, arrays, tensors)
    raise BadInput(
        f"{place} is a {type(value).__name__}: a job returns numbers, strings, arrays, tensors, lists and dicts of them"
    )


def _pack_dict(value: dict, place: str, arrays: dict[str, np.ndarray], tensors: dict[str, Any]) -> Any:
    """A dict with ordinary string keys stays one; any other keys become a list of pairs."""
    if all(isinstance(key, str) and not key.startswith("@") for key in value):
        return {key: _pack(item, f"{place}[{key!r}]", arrays, tensors) for key, item in value.items()}
    pairs = [
        [_pack(key, f"a key of {place}", arrays, tensors), _pack(item, f"{place}[{key!r}]", arrays, tensors)]
        for key, item in value.items()
    ]
    return {"@pairs": pairs}


def _pack_tensor(value: Any, arrays: dict[str, np.ndarray], tensors: dict[str, Any]) -> Any:
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


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
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


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    if not arrays:
        return b""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _safetensors(tensors: dict[str, Any]) -> bytes:
    if not tensors:
        return b""
    from safetensors.torch import save

    # Tensors that share memory are refused by the format: each gets its own.
    return save({name: tensor.clone() for name, tensor in _in_order(tensors)})


def _in_order(tensors: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return sorted(tensors.items())
