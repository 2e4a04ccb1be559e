"""The LSTM over a whole sequence by two Triton kernels, where they may serve and have been compared with the plain way.

They serve members of float32 weights on a GPU whose products may be rounded to TF32 (precision "tf32" or "bf16"), up to
a width whose W₂ fits into a multiprocessor's shared memory. A first call for each width and device compares them with
the plain way on a few random numbers: where they do not compile, do not run or do not agree, one sentence says so and
the plain way goes on being used; SANDLAB_LSTM_KERNELS=0 in the environment says so beforehand. The kernels have not
run on a GPU yet, only in Triton's interpreter.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction, FunctionCtx, once_differentiable

from sandlab.models._parts import lstm_kernels

__all__ = ["VARIABLE", "scan", "serves"]

Scan: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
VARIABLE = "SANDLAB_LSTM_KERNELS"  # "0" in the environment: never
WIDEST = 128  # four gates of 128 × 128 float16 numbers are 128 KB, of the 227 KB of a multiprocessor
CLOSE = 5e-3  # relative distance of two results in TF32; an error in a formula is far above
_trusted: dict[tuple[int, torch.device], bool] = {}


def serves(drive: Tensor, weight: Tensor, plain: Scan) -> bool:
    """Whether the kernels compute this scan; `plain` is the way that they must agree with."""
    width, device = weight.shape[-1], drive.device
    if not (drive.is_cuda and drive.numel() and width <= WIDEST and _rounded(drive)):
        return False
    if os.environ.get(VARIABLE) == "0":
        return False
    if (width, device) not in _trusted:
        # What waits for the GPU would break a recording: the plain way is recorded, and the next call asks again.
        if torch.cuda.is_current_stream_capturing() or torch.cuda.get_sync_debug_mode():
            return False
        _trusted[width, device] = _agrees(width, device, plain)
    return _trusted[width, device]


def _rounded(drive: Tensor) -> bool:
    """Whether the products of this scan may be rounded to TF32: its states are float32, not more and not less."""
    narrow = drive.dtype in (torch.bfloat16, torch.float16) and torch.is_autocast_enabled("cuda")
    return (drive.dtype == torch.float32 or narrow) and torch.get_float32_matmul_precision() != "highest"


def _agrees(width: int, device: torch.device, plain: Scan) -> bool:
    """Whether results and gradients of a small scan are those of the plain way; says why not, in one sentence."""
    if importlib.util.find_spec("triton") is None:
        return False
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cuda", enabled=False):
            found, expected = (_outcome(way, width, device) for way in (scan, plain))
            distances = [float((one - other).norm() / other.norm()) for one, other in zip(found, expected)]
        if all(each <= CLOSE for each in distances):  # false for a NaN
            return True
        why = f"they differ from the plain way by {max(distances):.1g}"
    except Exception as problem:
        why = f"{type(problem).__name__}: {str(problem).strip().partition(chr(10))[0]}"
        _still_answers(device, why)
    warnings.warn(
        f"the LSTM's kernels are not used at width {width} on {device}, where populations run step by step ({why})",
        stacklevel=4,
    )
    return False


def _still_answers(device: torch.device, why: str) -> None:
    """After a fault inside a kernel, a wrong address say, a process can use its GPU no more: only another one can."""
    if device.type != "cuda":
        return
    try:
        torch.cuda.synchronize(device)
    except RuntimeError as lost:
        raise RuntimeError(
            f"the LSTM's kernels made {device} unusable for this process ({why}): "
            f"set {VARIABLE}=0 and give the same command again"
        ) from lost


def _outcome(way: Scan, width: int, device: torch.device) -> list[Tensor]:
    """Results and gradients on two tiles of examples, the second not full; the gradient sent is small, as in use."""
    members, time, batch = 2, 24, lstm_kernels.EXAMPLES + 3
    rng = torch.Generator().manual_seed(width)
    shapes = [(members, time, batch, 4 * width), (members, 4 * width, width), *[(members, batch, width)] * 2]
    inputs = [torch.randn(shape, generator=rng) for shape in shapes]
    inputs[1] *= width**-0.5
    values = [each.to(device).requires_grad_() for each in inputs]
    results = way(*values)
    sent = [1e-6 * torch.randn(each.shape, generator=rng).to(device) for each in results]
    return [*(each.detach() for each in results), *torch.autograd.grad(results, values, sent)]


def scan(drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """What `lstm_scan` of recurrent_scan.py returns, by the kernels."""
    return _OnChip.apply(drive, weight, hidden, cell)


class _OnChip(torch.autograd.Function):
    """The kernels do what depends on the step before; the gradient of the weights is one product over all steps."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx: FunctionCtx, drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        inputs = [each.contiguous() for each in (drive, weight, hidden, cell)]
        (members, time, batch, _), width = drive.shape, weight.shape[-1]
        every = drive.new_empty(members, time, batch, width)
        cells = drive.new_empty(members, time + 1, batch, width)
        gates = torch.empty_like(inputs[0])
        lstm_kernels.launch("lstm_forward", every.shape, *inputs, every, cells, gates)
        ctx.save_for_backward(inputs[1], inputs[2], every, cells, gates)
        return every, cells[:, -1].clone()

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(  # type: ignore[override]
        ctx: BackwardCFunction, *gradients: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        weight, hidden, every, cells, gates = ctx.saved_tensors
        sent, last = (each.contiguous() for each in gradients)
        to_drive, to_cell = torch.empty_like(gates), torch.empty_like(last)
        lstm_kernels.launch("lstm_backward", every.shape, weight, cells, gates, sent, last, to_drive, to_cell)
        first, later = to_drive[:, 0], to_drive[:, 1:]
        # The state before a step is the one after the step before: no copy with the first state in front is made.
        to_weight = torch.bmm(first.mT, hidden).baddbmm_(later.flatten(1, 2).mT, every[:, :-1].flatten(1, 2))
        return to_drive, to_weight, torch.bmm(first, weight), to_cell
