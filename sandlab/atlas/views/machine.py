"""What the lab page and the training page ask of a worker: its devices, and what can be trained with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sandlab.atlas.catalogue import CLOSED, ON_FILES
from sandlab.atlas.views.settings import made_world, offered
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

__all__ = ["devices", "training"]

GENERAL = ("transformer", "lstm", "rnn", "state-space", "hybrid")  # architectures that fit every world of tokens
_OF_THE_WORLD = ("vocab", "inputs", "outputs", "length", "read")


def devices() -> Facts:
    """What computes: the processor and the accelerators."""
    import torch

    found = {"cpu": f"{torch.get_num_threads()} thread for each question"}
    found |= {f"cuda:{number}": torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        found["mps"] = "the graphics processor of this Mac"
    return {"devices": found}


def training(
    world: str,
    model: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    options: Mapping[str, str] = MappingProxyType({}),
) -> Facts:
    """What can be set before a training: fields of the world, and those of the model that the world does not decide.

    Refused with a sentence is what cannot be trained: a model that does not fit, or one that reads files.
    """
    from sandlab.cli.training import model_config
    from sandlab.registry import get, names

    if world in ON_FILES or model in CLOSED or ":" in model:
        raise BadInput("choose a world and a model of the list")
    made = made_world(world, tuple(sorted(settings.items())))
    config = model_config(made, model, dict(options))
    own = [name for name in names("models") if not get("models", name).__module__.startswith("sandlab.")]
    changed = ", ".join(f"{name!r}: {getattr(config, name)!r}" for name in options if hasattr(config, name))
    return {
        "models": [*GENERAL, *(name for name in own if name not in CLOSED)],
        "settings": offered(made),
        "options": [each for each in offered(config) if each["name"] not in _OF_THE_WORLD],
        "code": f"world = sl.worlds.{made!r}\n"
        f'config = sl.lab.fit_config(world, sl.get("models", {model!r}), {{{changed}}})\n',
    }
