"""The training loop: steps, evaluations, early stopping, checkpoints, progress."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning._engine.backends import StackedModels
from sandlab.learning._engine.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from sandlab.learning._engine.engines import CUDAGraphEngine, Eager, Engine, make_engine
from sandlab.learning._engine.evaluation import Evaluation
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.steps import TrainState
from sandlab.learning.history import History
from sandlab.learning.objectives import MemberBatch
from sandlab.learning.optim import TorchOptimizer
from sandlab.learning.population import Population
from sandlab.learning.stopping import EarlyStop
from sandlab.progress import Progress

__all__ = ["Diverged", "Run"]

# Seconds of remaining work from which on half a minute of compiling pays.
COMPILE_PAYS = 120.0


class Diverged(FloatingPointError):
    """A loss became infinite or undefined."""


@dataclass
class Run:
    """One call of `train`. The number of updates done so far is `done`; `active` says which members still train."""

    state: TrainState
    source: Source
    steps: int
    every: int
    evaluation: Evaluation | None
    callbacks: tuple[Any, ...]
    stop: Any
    checkpoint: Checkpoint | None
    settings: str
    nan: str
    precision: str = "float32"
    compile: bool | None = None
    graph: bool | None = None
    done: int = 0
    eval_steps: list[int] = field(default_factory=list)
    metrics: dict[str, list[np.ndarray]] = field(default_factory=dict)
    _checked: int = 0
    _noted: float = 0.0
    _saved: float = field(default_factory=time.monotonic)
    _text: str = ""
    _dropout: list[tuple[Tensor, Any]] = field(default_factory=list)
    _strategy: str | None = None

    def __post_init__(self) -> None:
        self.backend = self.state.backend
        self.model, self.members = self.backend.model, len(self.backend)
        self.device = self.backend.rows[0].device
        self.active = np.ones(self.members, dtype=bool)
        self.stopped_at = np.full(self.members, -1)
        self.stop = copy.deepcopy(self.stop)
        if isinstance(self.stop, EarlyStop) and self.evaluation is None:
            raise BadInput("early stopping needs something to watch: give evaluate=held_out_batch")
        if self.checkpoint is not None and Path(self.checkpoint.path).exists():
            self._restore(*read_checkpoint(self.checkpoint.path, self.device))

    def go(self, show: bool | None) -> None:
        """Train to the end."""
        label = f"training {self.members} members" if self.members > 1 else "training"
        progress = Progress(self.steps, label, show=show)
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), computing(self.precision, self.device):
            # Dropout draws from torch's own generator: the run's seed decides it, and nothing outside is disturbed.
            torch.manual_seed(self.source.rng.initial_seed() & 0x7FFFFFFFFFFFFFFF)
            for state, generator in self._dropout:
                generator(state)
            engine = self._engine()
            while self.done < self.steps:
                if self.done % self.every == 0 and self.done not in self.eval_steps[-1:]:
                    self._look()
                if not self.active.any():
                    break
                count = min(engine.stride, self._until_next())
                engine.advance(self.done, count)
                self.done += count
                if self.device.type == "cpu":  # elsewhere reading a loss would wait for the step
                    self._check()
                progress(self.done, self._note())
                if self._save_is_due():
                    self._save()
            if self.done not in self.eval_steps[-1:]:
                self._look()
            if self.checkpoint is not None:
                self._save()
        progress.close()

    def _until_next(self) -> int:
        """Steps to the next evaluation, checkpoint or the end."""
        stops = [self.steps - self.done, self.every - self.done % self.every]
        if self.checkpoint is not None and self.checkpoint.every is not None:
            stops.append(self.checkpoint.every - self.done % self.checkpoint.every)
        return min(stops)

    def _save_is_due(self) -> bool:
        if self.checkpoint is None:
            return False
        every, seconds = self.checkpoint.every, self.checkpoint.seconds
        by_clock = seconds is not None and time.monotonic() - self._saved >= seconds
        return by_clock or (every is not None and self.done % every == 0)

    def _engine(self) -> Engine:
        """Settle how a population is computed (a resumed run goes on as it began), then how steps are carried out."""
        if self.done == self.steps:
            return Eager(self.state, self.source)
        if isinstance(self.backend, StackedModels):
            if self._strategy is None:
                self.backend.choose(self.source.peek(self.done), self.state.objective)
            else:
                self.backend.strategy = self._strategy
        if self.device.type == "cuda" and not hasattr(self.state.objective, "whole"):
            self.backend.fuse_attention()
        if self.compile:
            self.state.compile()
        engine = make_engine(self.state, self.source, graph=self.graph)
        left = self.steps - self.done
        if self.compile is None and isinstance(engine, CUDAGraphEngine) and engine.seconds * left > COMPILE_PAYS:
            del engine  # its recording holds the memory of a whole step
            self.state.compile()
            engine = make_engine(self.state, self.source, graph=self.graph)
        return engine

    def _look(self) -> None:
        """Evaluate, tell the callbacks, and stop the members that are done."""
        self._check()
        metrics: dict[str, np.ndarray] = {}
        if self.evaluation is not None:
            metrics = self.evaluation(self.model)
            if self.state.averages:
                self.state.swap_averages()
                metrics |= {f"ema/{name}": value for name, value in self.evaluation(self.model).items()}
                self.state.swap_averages()
        self.eval_steps.append(self.done)
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)
        if self.callbacks:
            self._tell(metrics)
        if self.stop is not None and self.done < self.steps:
            ending = np.broadcast_to(np.asarray(self.stop(self.done, metrics), dtype=bool), (self.members,))
            self.stopped_at[self.active & ending] = self.done
            self.active = self.active & ~ending
            self.state.live.copy_(torch.from_numpy(self.active))

    def _tell(self, metrics: dict[str, np.ndarray]) -> None:
        last = self.state.losses[self.done - 1].cpu().double().numpy() if self.done else np.full(self.members, np.nan)
        told = {"train_loss": last, **metrics}
        for callback in self.callbacks:
            if isinstance(self.model, Population):
                callback(self.done, self.model, dict(told))
            else:
                callback(self.done, self.model, {name: float(value[0]) for name, value in told.items()})

    def _check(self) -> None:
        """Refuse to go on with a loss that is not a number."""
        since, self._checked = self._checked, self.done
        if self.nan == "continue" or self.done <= since:
            return
        fresh = self.state.losses[since : self.done]
        bad = ~torch.isfinite(fresh) & self.state.live
        if not bad.any():
            return
        step, member = bad.nonzero()[0].tolist()
        who = f" of member {member}" if isinstance(self.model, Population) else ""
        raise Diverged(
            f"the loss{who} became {float(fresh[step, member])} at step {since + step} (learning rate "
            f"{float(self.state.lr[member]):g}): lower it, clip the gradient, or pass nan='continue'"
        )

    def _note(self) -> str:
        """The newest loss, read seldom: on a GPU reading it waits for the step."""
        now = time.monotonic()
        if now - self._noted > 2.0:
            self._noted = now
            self._text = f"loss {float(self.state.losses[self.done - 1].nanmean()):.4f}"
        return self._text

    def deviations(self) -> np.ndarray | None:
        """|loss − loss in float32| of each member's final weights on one batch, when another format was used."""
        if self.precision == "float32":
            return None
        batch = self.source.peek(max(0, self.steps - 1))
        found = []
        for precision in (self.precision, "float32"):
            with torch.no_grad(), computing(precision, self.device):
                logits = (
                    self.model(batch.inputs, per_member=True)
                    if isinstance(batch, MemberBatch)
                    else self.model(batch.inputs)
                )
                found.append(self.state.objective(logits, batch).double().reshape(-1).cpu().numpy())
        return np.abs(found[0] - found[1])

    def histories(self) -> list[History]:
        """What each member leaves behind."""
        deviations = self.deviations()
        losses = self.state.losses[: self.done].double().cpu().numpy()
        views = self.backend.layout.views(self.state.averages) if self.state.averages else None
        made = []
        for member in range(self.members):
            stopped = int(self.stopped_at[member])
            end = stopped if stopped >= 0 else self.done
            made.append(
                History(
                    steps=np.arange(end),
                    loss=losses[:end, member],
                    eval_steps=np.array(self.eval_steps, dtype=int),
                    metrics={name: np.array([row[member] for row in rows]) for name, rows in self.metrics.items()},
                    stopped_at=stopped if stopped >= 0 else None,
                    deviation=None if deviations is None else float(deviations[member]),
                    averaged=None if views is None else {name: view[member].clone() for name, view in views.items()},
                )
            )
        return made

    def _save(self) -> None:
        assert self.checkpoint is not None
        state, optimizer = self.state, self.state.optimizer
        tensors = {f"row.{place}": row for place, row in enumerate(self.backend.rows)}
        tensors |= {f"average.{place}": row for place, row in enumerate(state.averages)}
        tensors |= {f"optimizer.{name}": value for name, value in optimizer.state.items()}
        words = {name: np.stack(rows).tolist() for name, rows in self.metrics.items() if rows[0].dtype.kind == "U"}
        tensors |= {
            f"metric.{name}": torch.from_numpy(np.stack(rows))
            for name, rows in self.metrics.items()
            if name not in words
        }
        tensors |= {
            "generator": self.source.rng.get_state(),
            "dropout": torch.get_rng_state(),
            **({"dropout_gpu": torch.cuda.get_rng_state(self.device)} if self.device.type == "cuda" else {}),
            "losses": state.losses[: self.done],
            "table": state.table[: self.done],
            "clock": state.clock,
            "eval_steps": torch.tensor(self.eval_steps, dtype=torch.int64),
            "active": torch.from_numpy(self.active),
            "stopped_at": torch.from_numpy(self.stopped_at),
        }
        if isinstance(self.stop, EarlyStop):
            tensors |= {"best": torch.from_numpy(self.stop.best), "waited": torch.from_numpy(self.stop.waited)}
        strategy = self.backend.strategy if isinstance(self.backend, StackedModels) else None
        facts = {"done": self.done, "settings": self.settings, "strategy": strategy, "metrics": list(self.metrics)}
        facts["words"] = words
        write_checkpoint(self.checkpoint.path, tensors, facts)
        self._saved = time.monotonic()

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        assert self.checkpoint is not None
        path, done, state = self.checkpoint.path, facts["done"], self.state
        if facts["settings"] != self.settings:
            raise BadInput(f"{path} belongs to a run with other settings: {facts['settings']}, not {self.settings}")
        if done > self.steps or not torch.equal(tensors["table"], state.table[:done]):
            raise BadInput(f"{path} has done {done} steps of another schedule: take another file or the same schedule")
        self.done = self._checked = done
        _copy_rows(path, self.backend.rows, tensors, "row")
        _copy_rows(path, state.averages, tensors, "average")
        moments = {
            name.removeprefix("optimizer."): value for name, value in tensors.items() if name[:10] == "optimizer."
        }
        if isinstance(state.optimizer, TorchOptimizer):
            state.optimizer.load(moments)
        else:
            for name, value in state.optimizer.state.items():
                value.copy_(moments[name])
        self.source.rng.set_state(tensors["generator"].cpu())
        self._dropout, self._strategy = [(tensors["dropout"].cpu(), torch.set_rng_state)], facts["strategy"]
        if "dropout_gpu" in tensors and self.device.type == "cuda":
            self._dropout.append((tensors["dropout_gpu"].cpu(), torch.cuda.set_rng_state))
        state.losses[:done] = tensors["losses"]
        state.clock.copy_(tensors["clock"])
        self.eval_steps = tensors["eval_steps"].tolist()
        self.active, self.stopped_at = tensors["active"].cpu().numpy(), tensors["stopped_at"].cpu().numpy()
        state.live.copy_(tensors["active"])
        self.metrics = {
            name: [np.array(row) for row in facts["words"][name]]
            if name in facts["words"]
            else list(tensors[f"metric.{name}"].cpu().numpy())
            for name in facts["metrics"]
        }
        if isinstance(self.stop, EarlyStop):
            self.stop.best, self.stop.waited = tensors["best"].cpu().numpy(), tensors["waited"].cpu().numpy()


def _copy_rows(path: Any, rows: list[Tensor], tensors: dict[str, Tensor], kind: str) -> None:
    for place, row in enumerate(rows):
        saved = tensors[f"{kind}.{place}"]
        if saved.shape != row.shape:
            raise BadInput(f"{path} holds weights of shape {tuple(saved.shape)}, the model's are {tuple(row.shape)}")
        row.copy_(saved)
