"""Triton kernels of the LSTM over a whole sequence: a program per member and tile of examples keeps W₂ on the chip.

Inside a program the examples are the last axis: a gate is the product of a (width, width) matrix, which stays in shared
memory through all times, with the (width, examples) states, and all that a step moves is its own drive and gates.
Factors are float16, sums float32. Float16 has the 11 bits of TF32 but not its range, so what may lie outside (−1, 1)
is divided by its largest entry before, and the product is multiplied by it.

All functions but the first two are in Triton's language and handed to Triton by the first launch: this file is
imported where there is no Triton, too.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["EXAMPLES", "launch"]

EXAMPLES = 16  # of one program: few, so that few members fill the chip as well
FACTOR = "float16"  # of all products


def launch(name: str, shape: tuple[int, ...], *tensors: Tensor) -> None:
    """Run a kernel on tensors that hold states of this shape, (member, time, batch, width)."""
    _hand_to_triton()
    members, time, batch, width = shape
    units = max(16, 1 << (width - 1).bit_length())
    sizes = {"width": width, "units": units, "examples": EXAMPLES, "factor": getattr(tl, FACTOR)}
    with torch.cuda.device_of(tensors[0]):
        kernel = globals()[name][members, -(-batch // EXAMPLES)]
        kernel(*tensors, time, batch, **sizes, num_warps=8 if units > 64 else 4)


@functools.cache
def _hand_to_triton() -> None:
    """From here on the functions' names stand for what Triton makes of them."""
    import triton
    import triton.language

    here = globals()
    here["tl"] = triton.language
    # A width is compiled once, not for each time, batch and place in memory: within a recording that would be too late.
    kernel = triton.jit(do_not_specialize=["time", "batch"], do_not_specialize_on_alignment=["hidden", "cell", "last"])
    here |= {each.__name__: kernel(each) for each in (lstm_forward, lstm_backward)}
    here |= {each.__name__: triton.jit(each) for each in (_factor, _size, _tanh)}


def lstm_forward(
    drive: tl.tensor,
    weight: tl.tensor,
    hidden: tl.tensor,
    cell: tl.tensor,
    every: tl.tensor,
    cells: tl.tensor,
    gates: tl.tensor,
    time: tl.tensor,
    batch: tl.tensor,
    width: tl.constexpr,
    units: tl.constexpr,
    examples: tl.constexpr,
    factor: tl.constexpr,
) -> None:
    """i, f, o = σ(drive + W₂ h), g = tanh(the same), c = f c + i g, h = o tanh(c), from the first step to the last.

    drive (member, time, batch, 4 width), weight (member, 4 width, width), hidden, cell (member, batch, width) are read;
    every (member, time, batch, width), cells (member, time + 1, batch, width) and gates, of drive's shape, are written.
    units is the power of two above the width, examples those of a tile, factor the format of the factors.
    """
    member = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, units)[:, None]
    example = (tl.program_id(1) * examples + tl.arange(0, examples))[None, :]
    inside = (unit < width) & (example < batch)
    state, gate = example * width + unit, example * (4 * width) + unit  # places in one step's states and gates

    column = tl.arange(0, units)[None, :]
    square = (unit < width) & (column < width)
    entry = weight + member * (4 * width * width) + unit * width + column
    w_i, s_i = _factor(entry, square, factor)
    w_f, s_f = _factor(entry + width * width, square, factor)
    w_g, s_g = _factor(entry + 2 * width * width, square, factor)
    w_o, s_o = _factor(entry + 3 * width * width, square, factor)

    h = tl.load(hidden + member * batch * width + state, mask=inside, other=0.0)
    c = tl.load(cell + member * batch * width + state, mask=inside, other=0.0)
    cells += member * (time + 1) * batch * width
    tl.store(cells + state, c, mask=inside)
    drive += member * time * batch * (4 * width)
    gates += member * time * batch * (4 * width)
    every += member * time * batch * width
    for _ in tl.range(time, num_stages=3):  # what is loaded is on its way two steps before
        z_i = tl.load(drive + gate, mask=inside, other=0.0)
        z_f = tl.load(drive + gate + width, mask=inside, other=0.0)
        z_g = tl.load(drive + gate + 2 * width, mask=inside, other=0.0)
        z_o = tl.load(drive + gate + 3 * width, mask=inside, other=0.0)
        known = h.to(factor)
        i = tl.sigmoid(z_i + s_i * tl.dot(w_i, known, input_precision="ieee"))
        f = tl.sigmoid(z_f + s_f * tl.dot(w_f, known, input_precision="ieee"))
        g = _tanh(z_g + s_g * tl.dot(w_g, known, input_precision="ieee"))
        o = tl.sigmoid(z_o + s_o * tl.dot(w_o, known, input_precision="ieee"))
        c = f * c + i * g
        h = o * _tanh(c)
        cells += batch * width
        tl.store(cells + state, c, mask=inside)
        tl.store(every + state, h, mask=inside)
        tl.store(gates + gate, i, mask=inside)
        tl.store(gates + gate + width, f, mask=inside)
        tl.store(gates + gate + 2 * width, g, mask=inside)
        tl.store(gates + gate + 3 * width, o, mask=inside)
        drive += batch * (4 * width)
        gates += batch * (4 * width)
        every += batch * width


def lstm_backward(
    weight: tl.tensor,
    cells: tl.tensor,
    gates: tl.tensor,
    sent: tl.tensor,
    last: tl.tensor,
    to_drive: tl.tensor,
    to_cell: tl.tensor,
    time: tl.tensor,
    batch: tl.tensor,
    width: tl.constexpr,
    units: tl.constexpr,
    examples: tl.constexpr,
    factor: tl.constexpr,
) -> None:
    """Gradients of the drive and of the first cell, from the last step to the first.

        dh = sent_t + Σ W₂ᵀ dz_{t+1}          dc = dc_{t+1} f_{t+1} + dh o (1 − tanh² c)
        dz = dc g i (1 − i), dc c_{t−1} f (1 − f), dc i (1 − g²), dh tanh(c) o (1 − o)

    sent (member, time, batch, width) is the gradient of all hidden states, last (member, batch, width) that of the last
    cell; to_drive (the shape of gates) and to_cell (that of last) are written.
    """
    member = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, units)[:, None]
    example = (tl.program_id(1) * examples + tl.arange(0, examples))[None, :]
    inside = (unit < width) & (example < batch)
    state, gate = example * width + unit, example * (4 * width) + unit

    row = tl.arange(0, units)[None, :]
    square = (unit < width) & (row < width)
    entry = weight + member * (4 * width * width) + row * width + unit  # transposed
    w_i, s_i = _factor(entry, square, factor)
    w_f, s_f = _factor(entry + width * width, square, factor)
    w_g, s_g = _factor(entry + 2 * width * width, square, factor)
    w_o, s_o = _factor(entry + 3 * width * width, square, factor)

    dc = tl.load(last + member * batch * width + state, mask=inside, other=0.0)
    cells += (member * (time + 1) + time) * batch * width
    gates += (member * time + time - 1) * batch * (4 * width)
    to_drive += (member * time + time - 1) * batch * (4 * width)
    sent += (member * time + time - 1) * batch * width
    c = tl.load(cells + state, mask=inside, other=0.0)
    n_i = tl.zeros((units, examples), factor)  # dz of the step after over its size; there is none after the last
    n_f, n_g, n_o = n_i, n_i, n_i
    size = tl.zeros((1, examples), tl.float32)
    for _ in tl.range(time, num_stages=2):  # three would need more shared memory than there is
        # The products come first: meanwhile this step's numbers arrive.
        dh = s_i * tl.dot(w_i, n_i, input_precision="ieee") + s_f * tl.dot(w_f, n_f, input_precision="ieee")
        dh += s_g * tl.dot(w_g, n_g, input_precision="ieee") + s_o * tl.dot(w_o, n_o, input_precision="ieee")
        cells -= batch * width
        before = tl.load(cells + state, mask=inside, other=0.0)
        i = tl.load(gates + gate, mask=inside, other=0.0)
        f = tl.load(gates + gate + width, mask=inside, other=0.0)
        g = tl.load(gates + gate + 2 * width, mask=inside, other=0.0)
        o = tl.load(gates + gate + 3 * width, mask=inside, other=0.0)
        dh = dh * size + tl.load(sent + state, mask=inside, other=0.0)
        shown = _tanh(c)
        dc += dh * o * (1 - shown * shown)
        z_i = dc * g * i * (1 - i)
        z_f = dc * before * f * (1 - f)
        z_g = dc * i * (1 - g * g)
        z_o = dh * shown * o * (1 - o)
        tl.store(to_drive + gate, z_i, mask=inside)
        tl.store(to_drive + gate + width, z_f, mask=inside)
        tl.store(to_drive + gate + 2 * width, z_g, mask=inside)
        tl.store(to_drive + gate + 3 * width, z_o, mask=inside)
        largest = tl.maximum(tl.maximum(tl.abs(z_i), tl.abs(z_f)), tl.maximum(tl.abs(z_g), tl.abs(z_o)))
        size = _size(tl.max(largest, 0))[None, :]  # of each example
        part = 1 / size
        n_i, n_f = (z_i * part).to(factor), (z_f * part).to(factor)
        n_g, n_o = (z_g * part).to(factor), (z_o * part).to(factor)
        dc *= f
        c = before
        gates -= batch * (4 * width)
        to_drive -= batch * (4 * width)
        sent -= batch * width
    tl.store(to_cell + member * batch * width + state, dc, mask=inside)


def _factor(entry: tl.tensor, inside: tl.tensor, kind: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """A matrix as a factor of products, and its largest entry, by which it was divided."""
    matrix = tl.load(entry, mask=inside, other=0.0)
    size = _size(tl.max(tl.max(tl.abs(matrix), 1), 0))
    return (matrix / size).to(kind), size


def _size(largest: tl.tensor) -> tl.tensor:
    """What to divide by: the largest entry, or 1 where all are zero."""
    return tl.where(largest > 1e-30, largest, 1.0)


def _tanh(x: tl.tensor) -> tl.tensor:
    return 2 * tl.sigmoid(2 * x) - 1
