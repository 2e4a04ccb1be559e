"""Every model as a `torch.export` file (.pt2), with the same logits, for programs without SandLab.

import torch

program = torch.export.load("abab.pt2").module()
logits = program(tokens)
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from sandlab.errors import BadInput, integer
from sandlab.models.base import Model

__all__ = ["export_torch"]

_LENGTH = 16  # of inputs, where neither the caller nor the model's options say it
_EXAMPLES = 3  # one and two are numbers that torch takes for constants


def export_torch(
    model: Model, file: str | Path, *, length: int | None = None, inputs: Tensor | None = None
) -> tuple[Path, str]:
    """Write the traced network; returns the file, which ends in .pt2, and says which inputs it takes.

    length   tokens of an input (default: the model's own `length`, else 16); the file takes this length only
    inputs   an input to trace with instead, example axis first, for models that read no tokens

    The file takes any number of examples where the network's operations do not depend on that number, else one.

    >>> export_torch(sl.circuits.induction_head(3, 64), "induction.pt2")
    """
    if not isinstance(model, Model):
        raise BadInput(f"export_torch takes a model of SandLab, got {type(model).__name__}")
    example = _example(model, length) if inputs is None else inputs[:1].expand(_EXAMPLES, *inputs.shape[1:]).clone()
    program, number = _traced(model, example)
    path = Path(file)
    path = path if path.suffix == ".pt2" else path.with_name(path.name + ".pt2")
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, path)
    size = " × ".join(str(side) for side in example.shape[1:])
    return path, f"{number}, {size} {'numbers' if example.is_floating_point() else 'tokens'} each"


def _example(model: Model, length: int | None) -> Tensor:
    known = getattr(model.config, "length", None)
    time = integer("length", length, low=1) if length is not None else int(known or _LENGTH)
    return torch.zeros(_EXAMPLES, time, dtype=torch.long)


def _traced(model: Model, example: Tensor) -> tuple[torch.export.ExportedProgram, str]:
    """The program and the number of examples it takes: any number, or one."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            model(example)  # its own refusal is clearer than that of a tracer
        with _quiet():
            try:
                any_number = ({0: torch.export.Dim("batch", min=1)},)
                return torch.export.export(model, (example,), dynamic_shapes=any_number), "any number of inputs"
            except Exception:  # torch tells in many ways that the code depends on the number of examples
                return torch.export.export(model, (example[:1].clone(),)), "one input at a time"
    except BadInput:
        raise
    except Exception as problem:
        told = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        tried = f"{type(model).__name__} cannot be traced with inputs of shape {tuple(example.shape[1:])}"
        raise BadInput(f"{tried} ({told}): give another length, or in Python `inputs`") from None
    finally:
        model.train(training)


@contextmanager
def _quiet() -> Iterator[None]:
    """A tracer's remarks about a try that is followed by another would only worry."""
    logger = logging.getLogger("torch")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
