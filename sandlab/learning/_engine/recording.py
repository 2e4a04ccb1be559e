"""Updates recorded as CUDA graphs and replayed.

A recorded update contains everything: drawing the batch on the device, forward and backward pass of all members, the
optimiser, the average. Replaying it costs one launch; between replays the members' state is ordinary tensors, so that
evaluation, early stopping, checkpoints and new members need no new recording.
"""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn

from sandlab.learning._engine.sources import Source, tensors_of
from sandlab.worlds.base import Batch

if TYPE_CHECKING:
    from sandlab.learning._engine.step import Step

__all__ = ["Recording", "syncs_host"]


class Recording:
    """An update as CUDA graphs: one of a single update, one of `chain` updates for models whose update is short.

    Worlds whose sampling waits for the host (a loop until accepted, a branch on a value) cannot be recorded; their
    batches are drawn as usual and copied into the `batch` that the recorded update reads. `seconds` is the time of
    one update that a compiler could make shorter: none where it would write a recurrence out step by step, compile that
    for minutes, and do without what computes all steps at once.
    """

    def __init__(self, step: Step, source: Source, *, chain: int | None = None) -> None:
        self.step, self.source = step, source
        self.batch: Batch | None = None
        self.seconds = 0.0
        with _restored(step, source):
            source.draw(0)  # the first draw may set libraries up, and wait for that
            if source.varies or syncs_host(lambda: source.draw(0)):
                self.batch = copy.deepcopy(source.draw(0))
            # On the batch that will be recorded: one of other strides would make a compiled step compile again.
            self._warm_up()
            if syncs_host(self._update):
                raise RuntimeError("a part of the step waits for the host")
            self.single = self._record(1)
            self.chain = self._useful_chain() if chain is None else chain
            self.several = self._record(self.chain) if self.chain > 1 else None

    def replay(self, start: int, count: int) -> None:
        """`count` updates, of which the first is number `start`."""
        end = start + count
        while start < end:
            if self.batch is not None:
                batch = self.source.draw(start)
                if not _write(self.batch, batch):  # of another shape: outside of the recording
                    self.step.update(batch)
                    start += 1
                    continue
            if self.several is not None and end - start >= self.chain:
                self.several.replay()
                start += self.chain
            else:
                self.single.replay()
                start += 1

    def _update(self) -> None:
        self.step.update(self.source.draw(0) if self.batch is None else self.batch)

    def _warm_up(self) -> None:
        """A few ordinary updates on the stream of the recording: libraries set themselves up, compilers compile."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._update()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()

    def _record(self, updates: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if self.batch is None and self.source.rng.device.type == "cuda":
            graph.register_generator_state(self.source.rng)
        with _no_collection(), torch.cuda.graph(graph):
            for _ in range(updates):
                self._update()
        return graph

    def _useful_chain(self) -> int:
        """As many updates as fill about two milliseconds; one when each update's batch comes from outside."""
        self.single.replay()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(3):
            self.single.replay()
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - begun) / 3
        self.seconds = 0.0 if _steps_through_time(self.step.model) else seconds
        return 1 if self.batch is not None else max(1, min(16, int(2e-3 / max(seconds, 1e-6))))


def _steps_through_time(model: nn.Module) -> bool:
    """Whether it has layers that compute a sequence at once unless a compiler reads them, and else step by step."""
    return any(hasattr(part, "_at_once") for part in getattr(model, "template", model).modules())


def syncs_host(compute: Callable[[], object]) -> bool:
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
def _no_collection() -> Iterator[None]:
    """Collect garbage now and not inside the block: a graph of an earlier training that is freed while another one is
    recorded makes the recording fail."""
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _restored(step: Step, source: Source) -> Iterator[None]:
    """Whatever is tried inside, members and generators are as before afterwards."""
    values = [*step.tensors().values(), step.losses]
    copies = [value.clone() for value in values]
    generator, dropout = source.rng.get_state(), torch.cuda.get_rng_state(step.device)
    try:
        yield
    finally:
        torch.cuda.synchronize()
        with torch.no_grad():
            for value, before in zip(values, copies):
                value.copy_(before)
        source.rng.set_state(generator)
        torch.cuda.set_rng_state(dropout, step.device)


def _write(target: Batch, batch: Batch) -> bool:
    """Copy a batch into another of the same shape; False when the shapes differ."""
    pairs = list(zip(tensors_of(target), tensors_of(batch)))
    if any(old.shape != new.shape for old, new in pairs):
        return False
    for old, new in pairs:
        old.copy_(new)
    return True
