"""What the lab page and the training page ask of a worker: its devices, and whether something can be trained."""

from __future__ import annotations

from sandlab.atlas.catalogue import CLOSED, ON_FILES
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

__all__ = ["devices", "trainable"]


def devices() -> Facts:
    """What computes: the processor and the accelerators."""
    import torch

    found = {"cpu": f"{torch.get_num_threads()} thread for each question"}
    found |= {f"cuda:{number}": torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        found["mps"] = "the graphics processor of this Mac"
    return {"devices": found}


def trainable(world: str, model: str) -> Facts:
    """Whether there is such a world and such a model, both without files of the user's."""
    from sandlab.registry import get

    if world in ON_FILES or model in CLOSED:
        raise BadInput("choose a world and a model of the list")
    get("worlds", world)
    get("models", model)
    return {}
