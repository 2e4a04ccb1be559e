"""Training of one model or of a population: `train`."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, integer, number
from sandlab.learning.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from sandlab.learning.evaluation import make_evaluation
from sandlab.learning.history import History
from sandlab.learning.objectives import Objective, Stacked, as_objective
from sandlab.learning.optimizers import Settings, TorchOptimizer, clip_rows, make_optimizer
from sandlab.learning.population import Population, per_member
from sandlab.learning.progress import Progress
from sandlab.learning.schedules import Schedule, factors
from sandlab.learning.stopping import EarlyStop
from sandlab.learning.trainees import Alone, Crowd, Trainee
from sandlab.worlds.base import Batch

__all__ = ["Diverged", "train"]


class Diverged(FloatingPointError):
    """A loss became infinite or undefined."""


def train(
    model: nn.Module,
    world: Any,
    *,
    steps: int,
    batch_size: int = 64,
    rng: torch.Generator,
    objective: str | Objective | None = None,
    optimizer: str | Callable[..., Any] = "adamw",
    lr: float | Sequence[float] | Tensor = 1e-3,
    weight_decay: float | Sequence[float] | Tensor = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    schedule: Schedule = "constant",
    warmup: int = 0,
    clip: float | None = None,
    ema: float | None = None,
    evaluate: Any = None,
    every: int | None = None,
    callbacks: Iterable[Callable[[int, Any, dict[str, Any]], Any]] = (),
    stop: Callable[[int, dict[str, np.ndarray]], Any] | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    progress: bool | None = None,
    data: str = "shared",
    nan: str = "raise",
) -> Any:
    """Train a model, or every member of a population, on fresh batches of a world; returns History (one per member).

    model         a torch module, or a `Population`; it is trained in place
    world         anything with `sample(n, rng=…) -> Batch`; with a method `at(step)` it is a curriculum of such worlds
    objective     `objective(logits, batch)`, a name, or None for cross-entropy against the batch's targets
    optimizer     "adamw", "adam", "sgd", any name or class of torch.optim, or a factory (weights) -> optimiser
    lr, weight_decay   one value, or one per member; betas for Adam, momentum for SGD
    schedule      "constant", "linear", "cosine", "one-cycle", "step", or a function of the step; warmup in steps
    clip          largest norm of a member's gradient; ema: decay of the average of the weights (History.averaged)
    evaluate      a held-out Batch, a dictionary of them, or a function of the model; done before the first step,
                  `every` so many steps and at the end. With `ema` the averaged weights are evaluated too ("ema/…")
    callbacks     called as callback(step, model, metrics) at each evaluation, metrics per member
    stop          a function (step, metrics) -> whether to stop, per member, such as `EarlyStop`; stopped members freeze
    checkpoint    a file to save the run to and to resume it from, bit by bit the same run
    data          "shared": one batch for all members per step; "separate": each member has examples of its own
    nan           "raise" an error that names the step and the member, or "continue"
    """
    run = _Run(model, world, steps, batch_size, rng, as_objective(objective), data, nan)
    run.optimize(
        optimizer, Settings((betas[0], betas[1]), momentum), lr, weight_decay, factors(schedule, run.steps, warmup)
    )
    run.shape(clip, ema)
    run.watch(evaluate, every, tuple(callbacks), stop)
    run.remember(checkpoint, (optimizer if isinstance(optimizer, str) else "own", betas, momentum, clip, ema))
    try:
        run.go(progress)
    finally:
        run.trainee.close()
    histories = run.histories()
    return histories if isinstance(model, Population) else histories[0]


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self,
        model: nn.Module,
        world: Any,
        steps: int,
        batch_size: int,
        rng: torch.Generator,
        objective: Objective,
        data: str,
        nan: str,
    ) -> None:
        self.steps = integer("steps", steps, low=0)
        self.batch_size = integer("batch_size", batch_size, low=1)
        self.separate = choice("data", data, ("shared", "separate")) == "separate" and isinstance(model, Population)
        self.nan = choice("nan", nan, ("raise", "continue"))
        if not isinstance(rng, torch.Generator):
            raise BadInput(f"rng must be a torch generator, got {rng!r}: use rng=sl.rng(0)")
        if not hasattr(world, "sample") and not hasattr(world, "at"):
            raise BadInput(f"world must have a method sample(n, rng=…), got {type(world).__name__}")
        self.model, self.world, self.rng, self.objective = model, world, rng, objective
        self.trainee: Trainee = Crowd(model) if isinstance(model, Population) else Alone(model)
        self.members, self.device = len(self.trainee), self.trainee.rows[0].device
        self.done = 0
        self.active = np.ones(self.members, dtype=bool)
        self.stopped_at = np.full(self.members, -1)
        kind = torch.float64 if self.trainee.rows[0].dtype == torch.float64 else torch.float32
        self.losses = torch.full((self.steps, self.members), torch.nan, dtype=kind, device=self.device)
        self.eval_steps: list[int] = []
        self.metrics: dict[str, list[np.ndarray]] = {}
        self.averages: list[Tensor] = []

    # --- settings

    def optimize(self, optimizer: Any, settings: Settings, lr: Any, decay: Any, table: Tensor) -> None:
        self.optimizer = make_optimizer(optimizer, settings)
        own = isinstance(self.optimizer, TorchOptimizer) and self.optimizer.own_rates
        self.lr = per_member("lr", 1.0 if own else lr, self.members).to(self.device)
        self.decay = per_member("weight_decay", decay, self.members).to(self.device)
        self.table = table.to(self.device)
        self.optimizer.start(self.trainee.rows, self.trainee.layout)

    def shape(self, clip: float | None, ema: float | None) -> None:
        self.clip = None if clip is None else number("clip", clip, low=0.0)
        self.ema = None if ema is None else number("ema", ema, low=0.0, high=1.0)
        if self.ema is not None:
            self.averages = [row.clone() for row in self.trainee.rows]

    def watch(self, evaluate: Any, every: int | None, callbacks: tuple[Any, ...], stop: Any) -> None:
        self.evaluation = make_evaluation(evaluate, self.objective, self.device, self.members)
        self.every = max(1, self.steps // 20) if every is None else integer("every", every, low=1)
        self.callbacks, self.stop = callbacks, copy.deepcopy(stop)
        if isinstance(self.stop, EarlyStop) and self.evaluation is None:
            raise BadInput("early stopping needs something to watch: give evaluate=held_out_batch")

    def remember(self, checkpoint: str | Path | Checkpoint | None, settings: tuple[Any, ...]) -> None:
        if isinstance(checkpoint, (str, Path)):
            checkpoint = Checkpoint(checkpoint)
        self.checkpoint = checkpoint
        self.settings = repr((self.batch_size, self.lr.tolist(), self.decay.tolist(), self.separate, *settings))
        if checkpoint is not None and Path(checkpoint.path).exists():
            self._restore(*read_checkpoint(checkpoint.path, self.device))

    # --- the loop

    def go(self, show: bool | None) -> None:
        label = f"training {self.members} members" if self.members > 1 else "training"
        progress = Progress(self.steps, label, show=show)
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            # Dropout draws from torch's own generator: the run's seed decides it, and nothing outside is disturbed.
            torch.manual_seed(self.rng.initial_seed() & 0x7FFFFFFFFFFFFFFF)
            if self.dropout_state is not None:
                torch.set_rng_state(self.dropout_state)
            if isinstance(self.trainee, Crowd) and self.done < self.steps:
                self._choose(self.trainee)
            while self.done < self.steps and self.active.any():
                if self.done % self.every == 0 and self.done not in self.eval_steps[-1:]:
                    self.look()
                if not self.active.any():
                    break
                self.step()
                progress(self.done, self._note())
                if self.checkpoint is not None and self.done % self.checkpoint.every == 0:
                    self._save()
            if not self.eval_steps or self.eval_steps[-1] != self.done:
                self.look()
            self._check(self.done)
            if self.checkpoint is not None:
                self._save()
        progress.close()

    def _choose(self, crowd: Crowd) -> None:
        if self.strategy is not None:
            crowd.strategy = self.strategy
            return
        state = self.rng.get_state()
        crowd.choose(self.draw(), self.objective)
        self.rng.set_state(state)

    def draw(self) -> Batch:
        """The batch of this step, as the objective wants it, on the model's device."""
        world = self.world.at(self.done) if hasattr(self.world, "at") else self.world
        count = self.batch_size * (self.members if self.separate else 1)
        batch = world.sample(count, rng=self.rng)
        prepare = getattr(self.objective, "prepare", None)
        if prepare is not None:
            batch = prepare(batch, rng=self.rng)
        if batch.inputs.device != self.device:
            batch = batch.to(self.device)
        return _split(batch, self.members) if self.separate else batch

    def step(self) -> None:
        """One update of every active member."""
        self.trainee.step = self.done
        losses, gradients = self.trainee.compute(self.draw(), self.objective)
        self.losses[self.done] = losses
        self.done += 1
        if self.device.type == "cpu":
            self._check(self.done, since=self.done - 1)
        with torch.no_grad():
            if self.clip is not None:
                clip_rows(gradients, self.clip)
            lr = self.lr * self.table[self.done - 1]
            decay = self.decay
            if not self.active.all():
                active = torch.from_numpy(self.active).to(self.device)
                lr, decay = lr * active, decay * active
            count = torch.full((self.members,), self.done, device=self.device)
            self.optimizer.step(self.trainee.rows, gradients, lr, decay, count)
            if self.ema is not None:
                for average, row in zip(self.averages, self.trainee.rows):
                    average.lerp_(row, 1 - self.ema)

    def look(self) -> None:
        """Evaluate, tell the callbacks, and stop the members that are done."""
        self._check(self.done)
        metrics: dict[str, np.ndarray] = {}
        if self.evaluation is not None:
            metrics = self.evaluation(self.model)
            if self.ema is not None:
                self._swap()
                metrics |= {f"ema/{name}": value for name, value in self.evaluation(self.model).items()}
                self._swap()
        self.eval_steps.append(self.done)
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)
        if self.callbacks:
            last = self.losses[self.done - 1].cpu().double().numpy() if self.done else np.full(self.members, np.nan)
            told = {"train_loss": last, **metrics}
            alone = not isinstance(self.model, Population)
            for callback in self.callbacks:
                callback(self.done, self.model, {k: float(v[0]) for k, v in told.items()} if alone else dict(told))
        if self.stop is not None and self.done < self.steps:
            ending = np.broadcast_to(np.asarray(self.stop(self.done, metrics), dtype=bool), (self.members,))
            fresh = self.active & ending
            self.stopped_at[fresh] = self.done
            self.active = self.active & ~ending

    def _swap(self) -> None:
        with torch.no_grad():
            for average, row in zip(self.averages, self.trainee.rows):
                kept = row.clone()
                row.copy_(average)
                average.copy_(kept)

    def _check(self, upto: int, since: int | None = None) -> None:
        """Refuse to go on with a loss that is not a number."""
        since = self._checked if since is None else since
        self._checked = upto
        if self.nan == "continue" or upto <= since:
            return
        bad = ~torch.isfinite(self.losses[since:upto])
        if bad.any():
            step, member = bad.nonzero()[0].tolist()
            value = float(self.losses[since + step, member])
            who = f" of member {member}" if isinstance(self.model, Population) else ""
            lr = float(self.lr[member])
            raise Diverged(
                f"the loss{who} became {value} at step {since + step} (learning rate {lr:g}): "
                "lower the learning rate, clip the gradient, or pass nan='continue'"
            )

    def _note(self) -> str:
        """The newest loss, read seldom: on a GPU reading it waits for the step."""
        now = time.monotonic()
        if now - self._noted > 2.0:
            self._noted = now
            self._text = f"loss {float(self.losses[self.done - 1].mean()):.4f}"
        return self._text

    _noted, _text, _checked = 0.0, "", 0
    dropout_state: Tensor | None = None
    strategy: str | None = None

    # --- results and checkpoints

    def histories(self) -> list[History]:
        losses = self.losses[: self.done].double().cpu().numpy()
        views = self.trainee.layout.views(self.averages) if self.ema is not None else None
        made = []
        for member in range(self.members):
            stopped = int(self.stopped_at[member])
            end = stopped if stopped >= 0 else self.done
            made.append(
                History(
                    steps=np.arange(end),
                    loss=losses[:end, member],
                    eval_steps=np.array(self.eval_steps, dtype=int),
                    metrics={
                        name: np.array([value[member] for value in series]) for name, series in self.metrics.items()
                    },
                    stopped_at=stopped if stopped >= 0 else None,
                    averaged=None if views is None else {name: view[member].clone() for name, view in views.items()},
                )
            )
        return made

    def _save(self) -> None:
        assert self.checkpoint is not None
        tensors = {f"row.{place}": row for place, row in enumerate(self.trainee.rows)}
        tensors |= {f"average.{place}": row for place, row in enumerate(self.averages)}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizer.state.items()}
        tensors |= {"generator": self.rng.get_state(), "dropout": torch.get_rng_state()}
        tensors |= {"losses": self.losses[: self.done], "table": self.table[: self.done]}
        tensors |= {
            "eval_steps": torch.tensor(self.eval_steps),
            "active": torch.from_numpy(self.active),
            "stopped_at": torch.from_numpy(self.stopped_at),
        }
        tensors |= {f"metric.{name}": torch.from_numpy(np.stack(series)) for name, series in self.metrics.items()}
        if isinstance(self.stop, EarlyStop):
            tensors |= {"best": torch.from_numpy(self.stop.best), "waited": torch.from_numpy(self.stop.waited)}
        strategy = self.trainee.strategy if isinstance(self.trainee, Crowd) else None
        facts = {"done": self.done, "settings": self.settings, "strategy": strategy, "metrics": list(self.metrics)}
        write_checkpoint(self.checkpoint.path, tensors, facts)

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        path = self.checkpoint.path if self.checkpoint is not None else ""
        if facts["settings"] != self.settings:
            raise BadInput(f"{path} belongs to a run with other settings {facts['settings']}, not {self.settings}")
        done = facts["done"]
        if done > self.steps or not torch.equal(tensors["table"], self.table[:done]):
            raise BadInput(f"{path} has done {done} steps of another schedule: take another file or the same schedule")
        self.done = self._checked = done
        for place, row in enumerate(self.trainee.rows):
            if tensors[f"row.{place}"].shape != row.shape:
                raise BadInput(
                    f"{path} holds weights of shape {tuple(tensors[f'row.{place}'].shape)}, not {tuple(row.shape)}"
                )
            row.copy_(tensors[f"row.{place}"])
        for place, row in enumerate(self.averages):
            row.copy_(tensors[f"average.{place}"])
        self._restore_optimizer(
            {n.removeprefix("optimizer."): v for n, v in tensors.items() if n.startswith("optimizer.")}
        )
        self.rng.set_state(tensors["generator"].cpu())
        self.dropout_state, self.strategy = tensors["dropout"].cpu(), facts["strategy"]
        self.losses[:done] = tensors["losses"]
        self.eval_steps = tensors["eval_steps"].tolist()
        self.active, self.stopped_at = tensors["active"].cpu().numpy(), tensors["stopped_at"].cpu().numpy()
        self.metrics = {name: list(tensors[f"metric.{name}"].cpu().numpy()) for name in facts["metrics"]}
        if isinstance(self.stop, EarlyStop):
            self.stop.best, self.stop.waited = tensors["best"].cpu().numpy(), tensors["waited"].cpu().numpy()

    def _restore_optimizer(self, state: dict[str, Tensor]) -> None:
        if isinstance(self.optimizer, TorchOptimizer):
            self.optimizer.load(state)
            return
        for name, value in self.optimizer.state.items():
            value.copy_(state[name])


def _split(batch: Batch, members: int) -> Stacked:
    """members · n examples as n for each member."""

    def part(value: Tensor) -> Tensor:
        return value.unflatten(0, (members, -1))

    truth = {name: part(value) for name, value in batch.truth.items()}
    return Stacked(part(batch.inputs), part(batch.targets), part(batch.mask), truth)
