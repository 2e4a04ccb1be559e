"""Number formats of the matrix products: float32, TF32 or bfloat16, and how far the results are from float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sandlab.errors import choice, require

__all__ = ["PRECISIONS", "computing"]

PRECISIONS = ("float32", "tf32", "bf16")


@contextmanager
def computing(precision: str, device: torch.device) -> Iterator[None]:
    """Matrix products inside this block use the given format; weights, sums and the optimiser stay float32.

    "float32" the products are exact to 24 bits; "tf32" factors are rounded to 11 bits, sums are float32 (tensor cores;
    the same as float32 on a CPU); "bf16" factors and activations are rounded to 8 bits.
    """
    choice("precision", precision, PRECISIONS)
    on_gpu = device.type == "cuda"
    require(on_gpu or precision != "bf16", "precision", precision, "float32 on a CPU", "bf16 is for GPUs")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    recurrent, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, precision != "float32"
    try:
        # Casts are not remembered between calls: a recorded step must contain them.
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16", cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = recurrent
