"""Answers to a page's questions: read from the records, remembered, or computed by a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request

from sandlab.atlas.catalogue import built_in_worlds, has_plugins
from sandlab.atlas.kept import Kept
from sandlab.atlas.plain import as_json
from sandlab.atlas.records import claims, last_change, sources
from sandlab.atlas.workers import TooSlow, Workers
from sandlab.lab._store.plain import Facts

__all__ = ["Answers"]

_FIRST_PAGE, _QUIET = 0.1, 2.0  # seconds until records are read ahead; until workers load though nobody has asked them
_RECORDS: dict[str, Callable[[], Facts]] = {"claims": claims, "sources": sources}  # need no worker
_STEADY = ("worlds", "devices", *_RECORDS)  # the same for every asker


class Answers:
    """Questions go to the workers, except those whose answer is known or stands in a file."""

    def __init__(self, store: Path, workers: int) -> None:
        self.store, self.kept, self.pool = store, Kept(store), Workers(workers, store=store)
        self._steady: dict[str, tuple[object, asyncio.Task[bytes]]] = {}

    async def warm_up(self) -> None:
        """What the next pages ask for, once the first page has come: the claims, and workers."""
        if has_plugins():  # their worlds stand on the first page: a worker lists them
            await self.pool.start()
        await asyncio.sleep(_FIRST_PAGE)
        await asyncio.gather(self._known("claims"), return_exceptions=True)  # whoever asks is told what is wrong
        await self.pool.start(after=_QUIET)

    async def answer(self, view: str, arguments: Facts, request: Request) -> bytes:
        if view in _STEADY:
            return await self._known(view)
        if view == "guess":
            arguments["folder"] = str(self.kept.place(arguments.pop("kept", "")))
        if view == "cards":
            arguments["store"] = str(self.store)
        return as_json(await self._unless_gone(view, arguments, request))

    async def _known(self, view: str) -> bytes:
        """What seldom changes: the first asker has it made, the others wait for the same."""
        state = last_change() if view in _RECORDS else None
        before, task = self._steady.get(view, (None, None))
        if task is None or before != state:
            task = asyncio.create_task(self._make(view))
            self._steady[view] = state, task
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and (task.cancelled() or task.exception()):
                self._steady.pop(view, None)

    async def _make(self, view: str) -> bytes:
        if view == "worlds" and not has_plugins():
            return as_json({"worlds": built_in_worlds()})
        if view in _RECORDS:
            return await asyncio.to_thread(lambda: as_json(_RECORDS[view]()))
        return as_json(await self.pool.ask(view, {}))

    async def _unless_gone(self, view: str, arguments: Facts, request: Request) -> Facts:
        """The answer of a worker, given up when the page has gone for a second or two."""
        task, gone = asyncio.create_task(self.pool.ask(view, arguments)), 0
        try:
            while not (await asyncio.wait({task}, timeout=1.0))[0]:
                gone = gone + 1 if await request.is_disconnected() else 0
                if gone > 1:
                    raise TooSlow("the page has gone")
            return task.result()
        finally:
            task.cancel()
