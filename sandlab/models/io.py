"""Models on disk: a folder with `config.json` and `weights.safetensors`. Nothing is ever unpickled."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sandlab import __version__
from sandlab.errors import BadInput
from sandlab.models._parts.format_1 import translate
from sandlab.models.base import Model, seeded
from sandlab.registry import get, name_of

__all__ = ["load", "save"]

FORMAT = 2
CONFIG, WEIGHTS = "config.json", "weights.safetensors"


def save(model: Model, folder: str | Path) -> Path:
    """Write a model's config and weights into `folder` (created if missing), replacing an older save.

    `config.json` holds the registry name, the options, the format, SandLab's version and the SHA-256 of the weights.
    Each file is written under a temporary name and then renamed, so a reader never sees half a file.
    """
    from safetensors.torch import save as to_bytes

    name = name_of("models", model)
    weights = {key: value.detach().cpu().contiguous() for key, value in model.state_dict().items()}
    data = to_bytes(weights)
    about = {
        "format": FORMAT,
        "sandlab": __version__,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "weights_sha256": hashlib.sha256(data).hexdigest(),
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / WEIGHTS, data)
    _write(folder / CONFIG, (json.dumps(about, indent=2) + "\n").encode())
    return folder


def load(folder: str | Path, device: str | torch.device = "cpu") -> Model:
    """The model that `save` wrote into `folder`, with the same options, weights and precision.

    >>> model.save("runs/mine"); twin = sl.models.load("runs/mine")
    """
    folder = Path(folder)
    header = _read_header(folder / CONFIG)
    name, options, weights = header.model, header.config, _read_weights(folder / WEIGHTS, header.weights_sha256)
    if header.format == 1:
        name, options, weights = translate(name, options, weights)
    with seeded(0):  # drawn weights are replaced at once; the caller's generator stays where it was
        model: Model = get("models", name)(**options)
    _check(folder, weights, model.state_dict())
    model.load_state_dict(weights, assign=True)
    return model.to(device)


@dataclass(frozen=True)
class _Header:
    """What `config.json` must say."""

    format: int
    model: str
    config: dict[str, object]
    weights_sha256: str


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"no model in {path.parent}: {path.name} is missing; `model.save(folder)` writes it") from None
    except OSError as problem:
        raise BadInput(f"{path} cannot be read ({problem.strerror}): check the path and its permissions") from None


def _read_header(path: Path) -> _Header:
    data = _read(path)
    try:
        about = json.loads(data)
    except ValueError:
        raise BadInput(f"{path} is damaged: it is not JSON; save the model again") from None
    kinds = {"format": int, "model": str, "config": dict, "weights_sha256": str}
    if not (isinstance(about, dict) and all(isinstance(about.get(key), kind) for key, kind in kinds.items())):
        raise BadInput(f"{path} does not describe a SandLab model: it must have {', '.join(kinds)}")
    if about["format"] > FORMAT:
        raise BadInput(
            f"{path} has format {about['format']}, written by SandLab {about.get('sandlab')}, and this version "
            f"({__version__}) reads up to {FORMAT}: install the newer version"
        )
    config = {key: tuple(value) if isinstance(value, list) else value for key, value in about["config"].items()}
    return _Header(about["format"], about["model"], config, about["weights_sha256"])


def _read_weights(path: Path, digest: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    data = _read(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadInput(f"{path} is damaged: its contents are not those that {CONFIG} was written for; save it again")
    try:
        return from_bytes(data)
    except SafetensorError as problem:
        raise BadInput(f"{path} is not a safetensors file ({problem}): save the model again") from None


def _check(folder: Path, weights: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Refuse weights that do not fit the model that the config describes."""
    missing, extra = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    if missing or extra:
        raise BadInput(f"the weights in {folder} do not fit their config: missing {missing}, not expected {extra}")
    for name, value in weights.items():
        if value.shape != expected[name].shape:
            found, needed = tuple(value.shape), tuple(expected[name].shape)
            raise BadInput(f"the weights in {folder} do not fit their config: {name} is {found}, must be {needed}")
