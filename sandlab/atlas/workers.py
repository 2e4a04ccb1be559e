"""Worker processes for the pages' questions: a few at once, each with a limit on time and memory; the rest wait."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

from sandlab.atlas.guard import close_files, readable_roots
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts, Json

__all__ = ["TooSlow", "Workers"]

_MEMORY = 6 * 2**30
_PATIENCE = 10  # times the allowed processor time: a worker that waits for a busy machine is not at fault
_START, _AGAIN = 600.0, 2.0  # seconds for a worker to load; before another is tried


class TooSlow(Exception):
    """A question took longer than it may, or its worker died."""


class Workers:
    """`count` processes that answer questions in the order they come. One that is too slow is killed and replaced.

    seconds   of processor time that one question may take
    store     folder that they may read beside the installed code
    """

    def __init__(self, count: int = 2, seconds: int = 20, store: Path | None = None) -> None:
        self.count, self.seconds, self.store = count, seconds, store
        self._free: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()  # the last one used has the world at hand
        self._all: list[_Worker] = []
        self._loading: set[asyncio.Task[None]] = set()
        self._short, self._last = asyncio.Event(), time.monotonic()  # a question waits; when one was last answered

    async def start(self, after: float = 0.0) -> None:
        """Load each of them when a question waits for it, or when none was answered for so many seconds.

        One after the other: on two cores the pages keep one while workers load.
        """
        for _ in range(self.count - len(self._all)):
            while (rest := self._last + after - time.monotonic()) > 0 and not self._short.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._short.wait(), rest)
            self._short.clear()
            await self._load()

    async def _load(self) -> None:
        """A new worker; it is given questions once it is ready for them."""
        worker = _Worker(self.store)
        self._all.append(worker)
        try:
            await asyncio.wait_for(asyncio.to_thread(worker.pipe.recv), _START)
        except (TimeoutError, EOFError, OSError):  # it died while it loaded
            await asyncio.sleep(_AGAIN)
            self._replace(worker)
        else:
            self._last = time.monotonic()
            self._free.put_nowait(worker)

    async def ask(self, view: str, arguments: Facts) -> Facts:
        """The answer of a view; a sentence as `BadInput`, or `TooSlow`."""
        worker = await self._living()
        try:
            question = asyncio.to_thread(worker.ask, view, arguments, self.seconds)
            kind, answer = await asyncio.wait_for(question, _PATIENCE * self.seconds)
        except asyncio.CancelledError:  # the page has gone
            self._replace(worker)
            raise
        except (TimeoutError, EOFError, OSError):
            why = self._why(worker)
            self._replace(worker)
            raise TooSlow(why) from None
        self._last = time.monotonic()
        self._free.put_nowait(worker)
        if kind == "answer":
            return dict(answer)
        raise BadInput(str(answer))

    def _why(self, worker: _Worker) -> str:
        """Why a worker gave no answer: it is still at it, has used its time, or was ended by the system."""
        worker.process.join(0.2)
        if worker.process.exitcode not in (None, -signal.SIGXCPU):
            return "the system has ended this work, perhaps for lack of memory: try again, or choose smaller sizes"
        return f"this takes more than {self.seconds} s: choose smaller sizes"

    async def _living(self) -> _Worker:
        """The next free worker; one that the system has ended meanwhile is replaced."""
        while True:
            if self._free.empty():
                self._short.set()
            try:
                worker = await asyncio.wait_for(self._free.get(), _START)
            except TimeoutError:
                raise TooSlow("no worker is free: try again later") from None
            if worker.process.is_alive():
                return worker
            self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        worker.kill()
        if worker in self._all:  # not when everything ends
            self._all.remove(worker)
            task = asyncio.create_task(self._load())
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)

    def close(self) -> None:
        for worker in self._all:
            worker.kill()
        self._all.clear()


class _Worker:
    def __init__(self, store: Path | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, store), daemon=True, name="sandlab atlas worker")
        self.process.start()
        theirs.close()

    def ask(self, view: str, arguments: Facts, seconds: int) -> tuple[str, Json]:
        self.pipe.send((view, arguments, seconds))
        found: tuple[str, Json] = self.pipe.recv()
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.join(2)
        self.pipe.close()


def _serve(pipe: Connection, store: Path | None) -> None:
    """Answer questions until the pipe closes."""
    import os

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _warm_up()
    close_files([*readable_roots(), *([store] if store else [])])
    pipe.send("ready")
    while True:
        try:
            view, arguments, seconds = pipe.recv()
        except (EOFError, OSError):
            return
        _allow(seconds)
        pipe.send(_answer(view, arguments))


def _answer(view: str, arguments: Facts) -> tuple[str, Json]:
    from sandlab.atlas.views import VIEWS

    try:
        return ("answer", VIEWS[view](**arguments))
    except BadInput as problem:
        return ("refused", str(problem))
    except MemoryError:
        return ("refused", "this needs more memory than a page may use: choose smaller sizes")
    except Exception as problem:
        return ("refused", f"this cannot be computed ({type(problem).__name__}: {problem})"[:500])


def _allow(seconds: int) -> None:
    """The system ends this process when the next question takes more processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, most))


def _warm_up() -> None:
    """Load what the first question would wait for."""
    import torch

    from sandlab.atlas.views import VIEWS
    from sandlab.plugins import load_all

    torch.set_num_threads(1)
    load_all()  # plug-ins, while files are open to them
    VIEWS["world"]("dyck", {}, 0, 1)
    VIEWS["predict"]("dyck", "(")
