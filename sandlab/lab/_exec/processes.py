"""Jobs in worker processes of this machine, each with one torch thread and its own interpreter."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from sandlab.errors import integer
from sandlab.lab._exec.executors import Outcome
from sandlab.lab._exec.jobs import Failed, Task, execute_elsewhere

__all__ = ["Processes"]

_STARTED = b""
_NO_GUARD = (
    "a worker process could not start; a script that uses processes must run its studies below "
    '`if __name__ == "__main__":`, since each worker imports it'
)
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    task: Task | None = None
    started: bool = False


class Processes:
    """A few workers, started when first needed. A worker that dies is replaced and its task reported as lost."""

    name = "processes"
    gpus = 1
    here_when_alone = True

    def __init__(self, workers: int = 2) -> None:
        self.slots = integer("workers", workers, low=1)
        self._workers: list[_Worker] = []
        self._waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._feed()

    def collect(self, timeout: float) -> list[Outcome]:
        self._feed()
        busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
        ready = wait(list(busy), timeout)
        outcomes = [self._receive(busy[pipe]) for pipe in ready]  # type: ignore[index]
        self._feed()
        return [outcome for outcome in outcomes if outcome is not None]

    def status(self) -> dict[str, int]:
        return {}

    def abandon(self) -> None:
        self._waiting.clear()
        for worker in [worker for worker in self._workers if worker.task is not None]:
            self._stop(worker, kill=True)

    def close(self) -> None:
        self.abandon()
        for worker in list(self._workers):
            self._stop(worker)

    def _feed(self) -> None:
        """Give waiting tasks to idle workers, starting workers up to the limit."""
        while self._waiting:
            idle = [worker for worker in self._workers if worker.task is None]
            if not idle and len(self._workers) >= self.slots:
                return
            worker = idle[0] if idle else self._start()
            task = self._waiting.popleft()
            try:
                worker.pipe.send_bytes(pickle.dumps(task))
                worker.task = task
            except OSError:  # it died while idle: another takes the task
                self._stop(worker, kill=True)
                self._waiting.appendleft(task)

    def _receive(self, worker: _Worker) -> Outcome | None:
        """The outcome of a worker's task; None for its first word, which says that it has started."""
        try:
            message = worker.pipe.recv_bytes()
            if message == _STARTED:
                worker.started = True
                return None
            task, worker.task = worker.task, None
            assert task is not None
            return task, pickle.loads(message)
        except (EOFError, OSError):
            task, worker.task = worker.task, None
            assert task is not None
            self._stop(worker)
            code = worker.process.exitcode
            if not worker.started and code == 1:
                return task, Failed("WorkerNeverStarted", _NO_GUARD)
            return task, Failed("WorkerDied", f"its process ended with exit code {code}", transient=True)

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True, name="sandlab worker")
        with _as_workers_begin():
            process.start()
        theirs.close()
        worker = _Worker(process, mine)
        self._workers.append(worker)
        return worker

    def _stop(self, worker: _Worker, *, kill: bool = False) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        if kill:
            worker.process.kill()
        worker.process.join()


@contextmanager
def _as_workers_begin() -> Iterator[None]:
    """What a worker inherits: one thread for the libraries it will load, and Ctrl-C blocked.

    Ctrl-C reaches every process of the terminal, and the parent decides what to do with it.
    """
    resource_tracker.ensure_running()  # started by the first process otherwise, and it would unblock the signal
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _serve(pipe: Connection) -> None:
    """A worker's life: run what comes, end when the pipe closes or the parent is gone."""
    _ask_for_signal()
    try:
        pipe.send_bytes(_STARTED)
    except OSError:  # the parent was gone before this worker had begun
        return
    threading.Thread(target=_die_with_parent, daemon=True).start()
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            outcome: object = execute_elsewhere(pickle.loads(message))
        except Exception as problem:  # the job's module cannot be imported here
            outcome = Failed(type(problem).__name__, str(problem))
        try:
            pipe.send_bytes(pickle.dumps(outcome))
        except OSError:
            return


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _ask_for_signal() -> None:
    """Let Linux kill this process when its parent dies, also inside a long C call that holds the interpreter."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return  # not Linux: the thread that waits for the parent is all there is
