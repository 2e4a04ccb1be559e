"""SGD of one-hidden-layer perceptrons with the gradient written out: many members, millions of short steps.

The source's teachers do 20 million steps of batch 1 at width 50 000. A step here is a dozen tensor operations without
autograd; inputs and teachers' labels are made for whole blocks of steps at once, and on a GPU a block is recorded as a
CUDA graph and replayed.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.files import write_atomic
from sandlab.learning._engine.scratch import scratch_file
from sandlab.learning.distillation.checkpoint_store import CheckpointStore, soften
from sandlab.learning.distillation.lesson_plans import LessonPlan
from sandlab.models.base import seeded
from sandlab.models.distillation.theory_perceptron import perceptron
from sandlab.random import rng
from sandlab.worlds.base import World

__all__ = ["Drill", "DrillRuns", "PerceptronStack", "drill"]

_Measured: TypeAlias = "tuple[int, np.ndarray, np.ndarray]"
_Saved: TypeAlias = "tuple[int, dict[str, Tensor]]"
_SECONDS = 20.0
BLOCK = 64
"""Steps whose inputs are drawn at once, and which one recorded graph holds."""


@dataclass(frozen=True)
class Drill:
    """What is trained: perceptrons on a world of signs, by SGD with a constant rate.

    world, width          the inputs and labels; number of hidden units
    updates, batch_size, lr
    every                 steps between evaluations on `eval_examples` held-out examples
    save                  steps between kept checkpoints (0: none)
    seeds                 each has its own weights and its own data
    plan, tau             the teachers' checkpoints that label the data (None: the true labels) and their temperature,
                          for all members or one each; member i is taught by teacher i modulo their number
    teachers              the drill that made the checkpoints: it names them
    settle                stop this many steps after every member is at 0.999 (0: never)
    """

    world: World
    width: int
    updates: int
    batch_size: int = 1
    lr: float = 0.1
    every: int = 500
    save: int = 0
    eval_examples: int = 4096
    seeds: tuple[int, ...] = (0,)
    plan: LessonPlan | tuple[LessonPlan | None, ...] | None = None
    tau: float | tuple[float, ...] = 1e-4
    teachers: Drill | None = None
    settle: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("width", "updates", "batch_size", "every", "eval_examples"):
            integer(name, getattr(self, name), low=1)
        integer("save", self.save, low=0)
        number("lr", self.lr, low=0.0)
        for index in range(len(self.seeds)):
            number("tau", self.tau_of(index), low=0.0)

    @property
    def dimension(self) -> int:
        return int(self.world.dimension)  # type: ignore[attr-defined]

    def tau_of(self, index: int) -> float:
        """The temperature of one member's teacher."""
        return self.tau[index] if isinstance(self.tau, tuple) else self.tau

    def plan_of(self, index: int) -> LessonPlan | None:
        """The plan of one member."""
        return self.plan[index] if isinstance(self.plan, tuple) else self.plan


@dataclass(frozen=True)
class DrillRuns:
    """Curves of all members (seed axis first) and the checkpoints that were kept."""

    seeds: tuple[int, ...]
    eval_steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray
    saved: tuple[int, ...] = ()
    weights: dict[str, Tensor] = field(default_factory=dict)

    def store(self, what: Drill) -> CheckpointStore:
        """The checkpoints as a store, whose models are `MLP`s."""
        config = perceptron(what.dimension, what.width, what.world.outputs)
        return CheckpointStore(config, self.seeds, self.saved, self.weights)

    def bare(self) -> DrillRuns:
        """The curves alone."""
        return replace(self, saved=(), weights={})


class PerceptronStack:
    """W₂ ReLU(W₁ x + b₁) + b₂ for several members, and one step of SGD on their cross-entropy.

    g = (softmax(z) − y)/B,  dh = W₂ᵀ g ⊙ 1[h > 0],  W₂ −= η g hᵀ,  b₂ −= η g,  W₁ −= η dh xᵀ,  b₁ −= η dh
    """

    names = ("layers.0.drive.weight", "layers.0.drive.bias", "unembed.weight", "unembed.bias")

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.first, self.bias, self.second, self.offset = weights

    @classmethod
    def drawn(cls, what: Drill) -> PerceptronStack:
        """Weights and biases uniform on ±1/√inputs, as torch draws them: those of a seed depend on it alone."""
        drawn = [_start(seed, what) for seed in what.seeds]
        return cls([torch.stack(parts).to(what.device) for parts in zip(*drawn)])

    def logits(self, x: Float[Tensor, "member example feature"]) -> Float[Tensor, "member example class"]:
        hidden = torch.baddbmm(self.bias.unsqueeze(1), x, self.first.mT).relu_()
        return torch.baddbmm(self.offset.unsqueeze(1), hidden, self.second.mT)

    def step(self, x: Tensor, target: Float[Tensor, "member example class"], rate: Tensor) -> None:
        """One update; `rate` is η/B of each member (member, 1, 1)."""
        hidden = torch.baddbmm(self.bias.unsqueeze(1), x, self.first.mT).relu_()
        slope = torch.baddbmm(self.offset.unsqueeze(1), hidden, self.second.mT).softmax(-1).sub_(target).mul_(rate)
        back = (slope @ self.second).mul_(hidden > 0)
        self.second.baddbmm_(slope.mT, hidden, alpha=-1)
        self.offset.sub_(slope.sum(1))
        self.first.baddbmm_(back.mT, x, alpha=-1)
        self.bias.sub_(back.sum(1))

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.first, self.bias, self.second, self.offset

    def state(self) -> dict[str, Tensor]:
        """Named as the parameters of `MLP`."""
        return {name: value.detach().cpu().clone() for name, value in zip(self.names, self.tensors())}


def _start(seed: int, what: Drill) -> list[Tensor]:
    d, m, c = what.dimension, what.width, what.world.outputs
    with seeded(seed):
        shapes = [(m, d), (m,), (c, m), (c,)]
        reach = [1 / math.sqrt(d)] * 2 + [1 / math.sqrt(m)] * 2
        return [torch.empty(shape).uniform_(-each, each) for shape, each in zip(shapes, reach)]


@torch.no_grad()
def drill(what: Drill, store: CheckpointStore | None = None) -> DrillRuns:
    """The job: train all members; with a store, on the predictions of its teachers (place i teaches member i).

    Inside a laboratory a long run keeps its state every 20 seconds and goes on from there when it is started again.
    """
    run = _Run(what, store)
    scratch = scratch_file("drill")
    run.resume(None if scratch is None else scratch.with_suffix(".pt"))
    for start, stop in _blocks(what, run.done):
        if run.measure(start):
            break
        run.advance(start, stop)
    return run.finish()


class _Run:
    """The state of a drill: weights, generators, curves, checkpoints, steps done."""

    def __init__(self, what: Drill, store: CheckpointStore | None) -> None:
        self.what, self.stack, self.data = what, PerceptronStack.drawn(what), _Data(what)
        self.labels = _Labels(what, store)
        rate = torch.full((len(what.seeds), 1, 1), what.lr / what.batch_size, device=what.device)
        self.block = _Recorded(self.stack, rate, what) if what.device != "cpu" else _Plain(self.stack, rate)
        self.curves: list[_Measured] = []
        self.saved: list[_Saved] = []
        self.learnt, self.done = math.inf, 0
        self.path: Path | None = None
        self.written = time.monotonic()

    def measure(self, step: int) -> bool:
        """Evaluate and keep weights when it is time; whether the run may stop here."""
        what = self.what
        if what.save and step % what.save == 0 and (not self.saved or self.saved[-1][0] < step):
            self.saved.append((step, self.stack.state()))
        if step % what.every or (self.curves and self.curves[-1][0] >= step):
            return False
        self.curves.append((step, *self.data.evaluate(self.stack)))
        self.learnt = min(self.learnt, step) if self.curves[-1][1].min() > 0.999 else self.learnt
        self._write()
        return bool(what.settle and step >= self.learnt + what.settle)

    def advance(self, start: int, stop: int) -> None:
        inputs = self.data.draw(stop - start)
        self.block(inputs, self.labels(inputs, start))
        self.done = stop

    def finish(self) -> DrillRuns:
        if not self.curves or self.curves[-1][0] != self.done:
            self.curves.append((self.done, *self.data.evaluate(self.stack)))
        if self.what.save and (not self.saved or self.saved[-1][0] != self.done):
            self.saved.append((self.done, self.stack.state()))
        return _runs(self.what, self.curves, self.saved)

    def resume(self, path: Path | None) -> None:
        """Go on from what an interrupted run left at `path`, and write there from now on."""
        self.path = path
        if path is None or not path.exists():
            return
        kept = torch.load(path, weights_only=False)
        for own, value in zip(self.stack.tensors(), kept["weights"]):
            own.copy_(value)
        for generator, state in zip(self.data.rngs, kept["rngs"]):
            generator.set_state(state)
        self.curves, self.saved, self.done, self.learnt = (kept[n] for n in ("curves", "saved", "done", "learnt"))

    def _write(self) -> None:
        if self.path is None or time.monotonic() - self.written < _SECONDS:
            return
        state = {"weights": [value.cpu() for value in self.stack.tensors()], "curves": self.curves, "saved": self.saved}
        state |= {"rngs": [each.get_state() for each in self.data.rngs], "done": self.done, "learnt": self.learnt}
        written = io.BytesIO()
        torch.save(state, written)
        write_atomic(self.path, written.getvalue())
        self.written = time.monotonic()


def _runs(what: Drill, curves: list[_Measured], saved: list[_Saved]) -> DrillRuns:
    steps, accuracy, loss = zip(*curves)
    names = PerceptronStack.names if saved else ()
    weights = {name: torch.stack([kept[name] for _, kept in saved], 1) for name in names}
    kept_at = tuple(step for step, _ in saved)
    return DrillRuns(what.seeds, np.array(steps), np.stack(accuracy, 1), np.stack(loss, 1), kept_at, weights)


def _blocks(what: Drill, start: int = 0) -> Iterator[tuple[int, int]]:
    """Stretches of at most BLOCK steps with one teacher each, cut at evaluations and checkpoints."""
    plans = [plan for index in range(len(what.seeds)) if (plan := what.plan_of(index)) is not None]
    cuts = {start for plan in dict.fromkeys(plans) for start, _, _ in plan.segments(what.updates)}
    ordered, place = sorted({cut for cut in cuts if cut > 0} | {what.updates}), 0
    while start < what.updates:
        while ordered[place] <= start:
            place += 1
        stop = min(start + BLOCK, ordered[place], start + what.every - start % what.every)
        if what.save:
            stop = min(stop, start + what.save - start % what.save)
        yield start, stop
        start = stop


class _Data:
    """Fresh inputs of every member, and the held-out examples that all share."""

    def __init__(self, what: Drill) -> None:
        self.what = what
        self.rngs = [rng(seed, "data", device=what.device) for seed in what.seeds]
        held_out = what.world.sample(what.eval_examples, rng=rng(1, "held out", device=what.device))
        self.inputs, self.labels = held_out.inputs, held_out.targets[:, 0]

    def draw(self, steps: int) -> Float[Tensor, "step member example feature"]:
        size = (steps * self.what.batch_size, self.what.dimension)
        own = [1.0 - 2.0 * torch.randint(2, size, generator=g, device=self.what.device) for g in self.rngs]
        return torch.stack(own).unflatten(1, (steps, -1)).transpose(0, 1).contiguous()

    def evaluate(self, stack: PerceptronStack) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy and loss of each member."""
        members = len(self.rngs)
        logits = stack.logits(self.inputs.expand(members, -1, -1))
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), self.labels.repeat(members), reduction="none"
        ).unflatten(0, (members, -1))
        accuracy = (logits.argmax(-1) == self.labels).double().mean(1)
        return accuracy.cpu().numpy(), loss.mean(1).double().cpu().numpy()


class _Labels:
    """Targets of a block of inputs: one-hot truth, or the teachers' predictions."""

    def __init__(self, what: Drill, store: CheckpointStore | None) -> None:
        self.what, self.store = what, store
        self.known: dict[tuple[int, int], PerceptronStack] = {}

    def __call__(self, inputs: Float[Tensor, "step member example feature"], step: int) -> Tensor:
        plans = [self.what.plan_of(index) for index in range(len(self.what.seeds))]
        parts = [self._member(plan, index, inputs[:, index], step) for index, plan in enumerate(plans)]
        return torch.stack(parts, 1)

    def _member(self, plan: LessonPlan | None, index: int, inputs: Tensor, step: int) -> Tensor:
        if plan is None or self.store is None:
            labels = self.what.world.label(inputs)  # type: ignore[attr-defined]
            return torch.nn.functional.one_hot(labels, self.what.world.outputs).to(inputs.dtype)
        teacher = self._teacher(plan.checkpoint(step), index % len(self.store.seeds))
        return soften(teacher.logits(inputs.flatten(0, 1).unsqueeze(0))[0], self.what.tau_of(index)).unflatten(
            0, inputs.shape[:2]
        )

    def _teacher(self, checkpoint: int, place: int) -> PerceptronStack:
        """One teacher at one checkpoint; only those in use stay in memory."""
        assert self.store is not None
        if (checkpoint, place) not in self.known:
            used = [key for key in self.known if key[1] == place]
            for key in used[: max(0, len(used) - 3)]:
                del self.known[key]
            kept = self.store.at(checkpoint)
            weights = [kept[name][place : place + 1].to(self.what.device) for name in PerceptronStack.names]
            self.known[checkpoint, place] = PerceptronStack(weights)
        return self.known[checkpoint, place]


@dataclass
class _Plain:
    """A block of steps, one after another."""

    stack: PerceptronStack
    rate: Tensor

    def __call__(self, inputs: Tensor, targets: Tensor) -> None:
        for x, y in zip(inputs, targets):
            self.stack.step(x, y, self.rate)


class _Recorded:
    """Whole blocks replayed as a CUDA graph; shorter ones run step by step."""

    def __init__(self, stack: PerceptronStack, rate: Tensor, what: Drill) -> None:
        self.plain, members = _Plain(stack, rate), len(what.seeds)
        self.inputs = torch.zeros(BLOCK, members, what.batch_size, what.dimension, device=what.device)
        self.targets = torch.zeros(BLOCK, members, what.batch_size, what.world.outputs, device=what.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, inputs: Tensor, targets: Tensor) -> None:
        if len(inputs) < BLOCK:
            self.plain(inputs, targets)
            return
        self.inputs.copy_(inputs)
        self.targets.copy_(targets)
        if self.graph is None:
            self.graph = self._record()
        self.graph.replay()

    def _record(self) -> torch.cuda.CUDAGraph:
        """The steps of a block; what the trial runs change is put back."""
        weights = self.plain.stack.tensors()
        before = [value.clone() for value in weights]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.plain(self.inputs[:3], self.targets[:3])
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.plain(self.inputs, self.targets)
        for value, old in zip(weights, before):
            value.copy_(old)
        return graph
