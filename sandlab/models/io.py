"""Models on disk: a folder with `config.json` and `weights.safetensors`. Nothing is ever unpickled.

Both files change together: `config.json` names its weights by their SHA-256. A newer save puts its weights beside the
older ones under a name made of that hash, replaces `config.json`, and only then moves the weights to their usual name;
whenever it is killed, the folder holds a whole model, the older or the newer one.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sandlab import __version__
from sandlab.checking import checked, sized
from sandlab.errors import BadInput
from sandlab.files import checksum, clear_parts, refuse_when_full, sync_folder, write_atomic
from sandlab.models._parts.format_1 import translate
from sandlab.models.base import Model, seeded
from sandlab.registry import get, name_of

__all__ = ["load", "save"]

FORMAT = 2
CONFIG, WEIGHTS = "config.json", "weights.safetensors"


@checked
def save(model: Model, folder: str | Path) -> Path:
    """Write a model's config and weights into `folder` (created if missing), replacing an older save.

    `config.json` holds the registry name, the options, the format, SandLab's version and the SHA-256 of the weights.
    A reader, or a crash at any moment, finds the older model or the newer one, whole.
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
        "weights_sha256": checksum(data),
    }
    folder = _writable(Path(folder))
    beside = folder / _hashed(checksum(data))
    write_atomic(beside, data)
    write_atomic(folder / CONFIG, (json.dumps(about, indent=2) + "\n").encode())
    os.replace(beside, folder / WEIGHTS)
    sync_folder(folder)
    _sweep(folder)
    return folder


@checked
def load(folder: str | Path, device: str | torch.device = "cpu") -> Model:
    """The model that `save` wrote into `folder`, with the same options, weights and precision.

    >>> model.save("runs/mine"); twin = sl.models.load("runs/mine")
    """
    folder = Path(folder)
    header, weights = _read_both(folder)
    name, options = header.model, header.config
    if header.format == 1:
        name, options, weights = translate(name, options, weights)
    # What the config asks for must be of the size of the weights: a few bytes of JSON could name any number.
    most = 2**24 + 64 * sum(value.nbytes for value in weights.values())
    with sized(f"the model that {folder / CONFIG} describes", most), seeded(0):
        model: Model = get("models", name)(**options)  # drawn weights are replaced at once
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


def _writable(folder: Path) -> Path:
    """The folder, made when missing; a file in its place is refused before anything is written."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"a model is saved into a folder, got the file {folder}")
    with refuse_when_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _hashed(digest: str) -> str:
    return f"weights-{digest[:16]}.safetensors"


def _sweep(folder: Path) -> None:
    """Remove what saves that were killed left behind."""
    for name in (CONFIG, WEIGHTS):
        clear_parts(folder / name)
    for path in folder.glob("weights-????????????????.safetensors"):
        path.unlink(missing_ok=True)


def _read_both(folder: Path) -> tuple[_Header, dict[str, Tensor]]:
    """Config and weights that belong together, also in the middle of a save."""
    for _ in range(2):  # again when a save went on between reading the config and its weights
        header = _read_header(folder / CONFIG)
        beside = folder / _hashed(header.weights_sha256)
        for path in (beside, folder / WEIGHTS) if beside.exists() else (folder / WEIGHTS,):
            data = _read(path)
            if checksum(data) == header.weights_sha256:
                return header, _weights(path, data)
    raise BadInput(
        f"{folder / WEIGHTS} is damaged: its contents are not those that {CONFIG} was written for; save it again"
    )


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


def _weights(path: Path, data: bytes) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

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
