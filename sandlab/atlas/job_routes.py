"""Addresses of the long work: trainings and runs of studies, their kept models, the machine they run on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sandlab.atlas.catalogue import PATHS
from sandlab.atlas.kept import packed
from sandlab.atlas.plain import Answer
from sandlab.atlas.records import found_now
from sandlab.errors import BadInput, integer, number
from sandlab.lab._store.plain import Facts

__all__ = ["job_routes"]

_MOST_BODY = 64 * 1024
_PARTS = ("studies", "cache", "checkpoints", "training", "cards", "atlas")  # of the store
_RUN = ("sandlab", "run", "STUDY", "--on", "local")


def job_routes() -> list[Route]:
    """Trainings and runs: start, follow, stop, keep, export; and what the machine is."""
    return [
        Route("/jobs", _every, methods=["GET"]),
        Route("/jobs/{which}", _one, methods=["GET"]),
        Route("/jobs", _begin, methods=["POST"]),
        Route("/jobs/{which}/findings", _findings, methods=["GET"]),
        Route("/jobs/{which}/keep", _keep, methods=["POST"]),
        Route("/jobs/{which}/export", _export, methods=["GET"]),
        Route("/kept", _every_kept, methods=["GET"]),
        Route("/jobs/{which}", _stop, methods=["DELETE"]),
        Route("/lab", _lab, methods=["GET"]),
    ]


async def _every(request: Request) -> Answer:
    return Answer({"jobs": [{**job.facts(), "lines": []} for job in request.app.state.jobs.all()]})


async def _one(request: Request) -> Answer:
    since = _whole("since", request.query_params.get("since", "0"))
    return Answer(request.app.state.jobs.get(_number(request)).facts(since))


async def _begin(request: Request) -> Answer:
    asked = await _body(request)
    kind, jobs = asked.get("kind"), request.app.state.jobs
    if kind == "run":
        words, title = _run_words(asked)
        return Answer(jobs.start("run", title, words).facts())
    if kind == "train":
        folder = request.app.state.kept.fresh()
        plan = _training_plan(asked)
        choice = {name: plan[name] for name in ("world", "model", "settings", "options")}
        await request.app.state.ask("training", choice)  # refuses what cannot be trained
        words = ["sandlab.atlas.live_training", json.dumps({**plan, "folder": str(folder)})]
        return Answer(jobs.start("train", f"{plan['model']} on {plan['world']}", words, folder).facts())
    raise BadInput("kind must be 'run' or 'train'")


async def _findings(request: Request) -> Answer:
    job = request.app.state.jobs.get(_number(request))
    if job.kind != "run" or job.state != "done":
        raise BadInput("there are findings once a study has been run to its end")
    study = job.words[_RUN.index("STUDY")]
    return Answer(await asyncio.to_thread(found_now, request.app.state.kept.folder.parent, study))


async def _keep(request: Request) -> Answer:
    return Answer({"kept": request.app.state.kept.keep(request.app.state.jobs.get(_number(request)))})


async def _export(request: Request) -> Response:
    job = request.app.state.jobs.get(_number(request))
    if job.folder is None or not job.saved or job.alive:
        raise BadInput("there is nothing to export yet: stop the training or wait for its end")
    about = {"Content-Disposition": f'attachment; filename="sandlab-training-{job.number}.zip"'}
    return Response(await asyncio.to_thread(packed, job.folder), media_type="application/zip", headers=about)


async def _every_kept(request: Request) -> Answer:
    return Answer({"kept": request.app.state.kept.all()})


async def _stop(request: Request) -> Answer:
    return Answer(request.app.state.jobs.stop(_number(request)).facts())


async def _lab(request: Request) -> Answer:
    return Answer(await asyncio.to_thread(_machine, request.app.state.kept.folder.parent))


async def _body(request: Request) -> Facts:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _MOST_BODY:
            raise BadInput("that is more than a page sends")
    try:
        found = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput("the request is no JSON") from None
    if not isinstance(found, dict):
        raise BadInput("the request must be an object")
    return found


def _run_words(asked: Facts) -> tuple[list[str], str]:
    from sandlab.registry import names

    study = asked.get("study")
    if study not in names("studies"):
        raise BadInput(f"no study is called {str(study)[:80]!r}")
    return [str(study) if word == "STUDY" else word for word in _RUN], f"{study} (quick)"


def _training_plan(asked: Facts) -> Facts:
    """What is to be trained, every part of the kind that it must be."""
    world, model = asked.get("world"), asked.get("model")
    if not isinstance(world, str) or not isinstance(model, str):
        raise BadInput("choose a world and a model of the list")
    steps = integer("steps", asked.get("steps", 300), low=1, high=20_000)
    seeds = integer("seeds", asked.get("seeds", 3), low=1, high=16)
    lr = number("lr", asked.get("lr", 0.003), low=1e-7, high=1.0)
    settings, options = _plain(asked.get("settings")), _plain(asked.get("options"))
    given = {"world": world, "settings": settings, "model": model, "options": options}
    return {**given, "steps": steps, "seeds": seeds, "lr": lr}


def _plain(given: object) -> dict[str, str]:
    """Settings as texts: they are read by their fields' types where they are used."""
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > 40:
        raise BadInput("settings are an object of at most 40 entries")
    if any(given.get(name) for name in PATHS):
        raise BadInput("a page opens no files")
    return {str(name)[:80]: str(value)[:2000] for name, value in given.items()}


def _number(request: Request) -> int:
    """The job that the address names."""
    return _whole("job", request.path_params["which"])


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput(f"{name} must be a whole number")
    return int(text)


def _machine(store: Path) -> Facts:
    """Processors, versions, and what each part of the store holds."""
    parts = {f"store: {name}": _held(store / name) for name in _PARTS}
    return {
        "processors": os.cpu_count(),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "torch": version("torch"),
        **({name: held for name, held in parts.items() if held} or {"store": "empty"}),
    }


def _held(folder: Path) -> str:
    """How many files a folder holds, and their size; files may go while they are counted."""
    sizes = []
    for file in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            sizes += [file.stat().st_size] if file.is_file() else []
    return f"{len(sizes)} file{'s' * (len(sizes) > 1)}, {sum(sizes) / 2**20:.1f} MB" if sizes else ""
