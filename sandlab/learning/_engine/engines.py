"""How steps are carried out: one by one from Python, or recorded once as a CUDA graph and replayed.

A recorded step contains everything: drawing the batch on the device, forward and backward pass of all members, the
optimiser, the average. Replaying it costs one launch; between replays the members' state is ordinary tensors, so that
evaluation, early stopping, checkpoints and new members in old places need no new recording.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.steps import TrainState
from sandlab.learning.optim import TorchOptimizer
from sandlab.worlds.base import Batch

__all__ = ["CUDAGraphEngine", "Eager", "Engine", "make_engine", "syncs_host"]


class Engine(Protocol):
    """Carries out steps; `stride` is how many it likes to do between looks at the clock."""

    stride: int

    def advance(self, step: int, count: int) -> None:
        """Do `count` steps, of which the first is number `step`."""
        ...


class Eager:
    """Every step from Python."""

    stride = 1

    def __init__(self, state: TrainState, source: Source) -> None:
        self.state, self.source = state, source

    def advance(self, step: int, count: int) -> None:
        for number in range(step, step + count):
            self.state.backend.step = number
            self.state.update(self.source.draw(number))


class CUDAGraphEngine:
    """Steps as CUDA graphs: one of a single step, one of `chain` steps for models whose step is short.

    Worlds whose sampling waits for the host (a loop until accepted, a look at a value) cannot be recorded; their
    batches are drawn as usual and copied into the place that the recorded step reads.
    """

    stride = 64
    seconds = 0.0  # of one step

    def __init__(self, state: TrainState, source: Source, *, chain: int | None = None) -> None:
        self.state, self.source = state, source
        self.place: Batch | None = None
        with _kept(state, source):
            source.draw(0)  # the first draw may set libraries up, and wait for that
            if syncs_host(lambda: source.draw(0)) or hasattr(source.world, "at"):
                self.place = _copy_of(source.draw(0))
            # On the batch that will be recorded: one of other strides would make a compiled step compile again.
            self._warm_up()
            if syncs_host(self._update):
                raise RuntimeError("a part of the step waits for the host")
            self.single = self._record(1)
            self.chain = self._useful_chain() if chain is None else chain
            self.several = self._record(self.chain) if self.chain > 1 else None

    def advance(self, step: int, count: int) -> None:
        last = step + count
        while step < last:
            if self.place is not None:
                batch = self.source.draw(step)
                if not _write(self.place, batch):  # another length: outside of the recording
                    self.state.update(batch)
                    step += 1
                    continue
            if self.several is not None and last - step >= self.chain:
                self.several.replay()
                step += self.chain
            else:
                self.single.replay()
                step += 1

    def _update(self) -> None:
        self.state.update(self.source.draw(0) if self.place is None else self.place)

    def _warm_up(self) -> None:
        """A few ordinary steps on the stream of the recording: libraries set themselves up, compilers compile."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._update()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()

    def _record(self, steps: int) -> Any:
        graph = torch.cuda.CUDAGraph()
        if self.place is None and self.source.rng.device.type == "cuda":
            graph.register_generator_state(self.source.rng)
        with torch.cuda.graph(graph):
            for _ in range(steps):
                self._update()
        return graph

    def _useful_chain(self) -> int:
        """As many steps as fill about two milliseconds; one when each step's batch comes from outside."""
        self.single.replay()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(3):
            self.single.replay()
        torch.cuda.synchronize()
        self.seconds = (time.perf_counter() - begun) / 3
        return 1 if self.place is not None else max(1, min(16, int(2e-3 / max(self.seconds, 1e-6))))


def make_engine(state: TrainState, source: Source, *, graph: bool | None = None) -> Engine:
    """Recorded steps on a GPU where every part allows it, ordinary ones otherwise."""
    allowed = state.backend.on_gpu and graph is not False and recordable(state)
    if not allowed:
        return Eager(state, source)
    try:
        return CUDAGraphEngine(state, source)
    except RuntimeError as failure:
        warnings.warn(f"the step cannot be recorded as a CUDA graph ({failure}): it runs from Python", stacklevel=2)
        torch.cuda.synchronize()
        return Eager(state, source)


def recordable(state: TrainState) -> bool:
    """Whether nothing in a step depends on Python numbers that change, or waits for the host."""
    own_loss = hasattr(state.objective, "whole") and not getattr(state.objective, "steady", False)
    return not (isinstance(state.optimizer, TorchOptimizer) or own_loss or state.backend.one_by_one)


def syncs_host(compute: Callable[[], Any]) -> bool:
    """Whether a computation on the GPU makes the host wait: such work cannot be recorded."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        compute()
    except RuntimeError:
        return True
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return False


@contextmanager
def _kept(state: TrainState, source: Source) -> Iterator[None]:
    """Whatever is tried inside, members and generators are as before afterwards."""
    values = [*state.backend.rows, *state.optimizer.state.values(), *state.averages]
    values += [state.clock, state.live, state.losses]
    copies = [value.clone() for value in values]
    generator, dropout = source.rng.get_state(), torch.cuda.get_rng_state(state.clock.device)
    try:
        yield
    finally:
        torch.cuda.synchronize()
        with torch.no_grad():
            for value, copy in zip(values, copies):
                value.copy_(copy)
        source.rng.set_state(generator)
        torch.cuda.set_rng_state(dropout, state.clock.device)


def _tensors(batch: Batch) -> list[Tensor]:
    return [batch.inputs, batch.targets, batch.mask, *batch.truth.values()]


def _copy_of(batch: Batch) -> Batch:
    truth = {name: value.clone() for name, value in batch.truth.items()}
    return type(batch)(batch.inputs.clone(), batch.targets.clone(), batch.mask.clone(), truth)


def _write(place: Batch, batch: Batch) -> bool:
    """Copy a batch into another of the same shape; False when the shapes differ."""
    pairs = list(zip(_tensors(place), _tensors(batch)))
    if any(old.shape != new.shape for old, new in pairs):
        return False
    for old, new in pairs:
        old.copy_(new)
    return True
