"""The atlas's server: loopback only, its own pages only, and nothing that a page sends is executed or opened."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from sandlab.atlas.catalogue import built_in_worlds, has_plugins
from sandlab.atlas.job_routes import add_job_routes
from sandlab.atlas.jobs import Jobs
from sandlab.atlas.kept import Kept
from sandlab.atlas.workers import TooSlow, Workers
from sandlab.errors import BadInput

__all__ = ["create_app", "refuse_taken_port", "serve"]

STATIC = Path(__file__).parent / "static"
# The style sheets that Observable Plot writes into its pictures: of a plot, of a legend of swatches, of a ramp.
PLOT_STYLE = " ".join(
    f"'sha256-{each}='"
    for each in (
        "jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww",
        "rCZUQsEQJf1DmnfnMZmlj08XC7qbIZySA6bEtitbQ00",
        "/jg3HOQ97BIOLIR7iXhepLJanBbw11P39q1Ne1E+6Jc",
    )
)
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {PLOT_STYLE}; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_GAME: dict[str, Callable[[str], Any]] = {
    "tokens": int, "depth": int, "seed": int, "rule": str, "error": float, "run": int,
}  # fmt: skip
# View → its arguments and how each is read from the address.
QUESTIONS: dict[str, dict[str, Callable[[str], Any]]] = {
    "worlds": {},
    "world": {"name": str, "settings": lambda text: _texts(text), "seed": int, "examples": int},
    "predict": {"name": str, "settings": lambda text: _texts(text), "text": str},
    "guess": {"kept": str, "text": str},
    "circuit": {
        "machine": str, "word": str, "length": int, "method": str, "bits": int, "off": str, "temperature": float,
    },
    "walk": {**_GAME, "algorithm": str},
    "race": {**_GAME, "draws": int},
    "refine": {"sites": int, "coupling": float, "edges": str, "block": int, "steps": int, "seed": int},
    "claims": {},
    "history": {"claim": str},
    "standing": {"chapter": str},
    "sources": {},
    "cards": {},
    "devices": {},
}  # fmt: skip
_FIRST_PAGE = 1.0  # seconds
_STEADY = ("worlds", "claims", "sources", "cards", "devices")  # the same for every asker, until the server ends


def create_app(
    *, store: Path | None = None, hosts: tuple[str, ...] = (), token: str = "", private: bool = False, workers: int = 2
) -> FastAPI:
    """The application.

    hosts     values of the Host header that are answered, such as "127.0.0.1:8000"; empty: any
    private   others can reach the address: the page itself and every answer need the token (?token=… opens the page)
    """
    token = token or secrets.token_urlsafe(24)
    folder = Path(store or os.environ.get("SANDLAB_STORE") or "runs")
    kept, pool = Kept(folder), Workers(workers, store=folder)
    known = {"worlds": _json({"worlds": built_in_worlds()})}  # with plug-ins once a worker has looked

    async def _remember(*views: str) -> None:
        for view in views:
            known[view] = _json(await pool.ask(view, {}))

    async def _ask(view: str, arguments: dict[str, Any], request: Request) -> dict[str, Any]:
        """The answer, given up when the page has gone for a second or two."""
        task, gone = asyncio.create_task(pool.ask(view, arguments)), 0
        try:
            while not (await asyncio.wait({task}, timeout=1.0))[0]:
                gone = gone + 1 if await request.is_disconnected() else 0
                if gone > 1:
                    raise TooSlow("the page has gone")
            return task.result()
        finally:
            task.cancel()

    async def _warm_up() -> None:
        """Workers load what they need once the first page has had its second: it needs none of them."""
        await asyncio.sleep(_FIRST_PAGE)
        pool.start()
        await _remember("claims", *(["worlds"] if has_plugins() else []))

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.jobs = Jobs(folder)
        warm = asyncio.create_task(_warm_up())
        yield
        warm.cancel()
        app.state.jobs.close()
        pool.close()

    app = FastAPI(title="SandLab atlas", docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    app.state.token, app.state.kept = token, kept
    app.state.ask = pool.ask

    @app.middleware("http")
    async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        refusal = _refusal(request, hosts, token, private)
        answer = refusal or await call(request)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    @app.exception_handler(BadInput)
    async def bad(_request: Request, problem: BadInput) -> JSONResponse:
        return JSONResponse({"error": str(problem)}, 400)

    @app.exception_handler(TooSlow)
    async def slow(_request: Request, problem: TooSlow) -> JSONResponse:
        return JSONResponse({"error": str(problem)}, 503)

    @app.get("/", response_class=HTMLResponse)
    async def page() -> HTMLResponse:
        return HTMLResponse((STATIC / "index.html").read_text(encoding="utf-8").replace("{{token}}", token))

    @app.get("/api/{view}")
    async def answer(view: str, request: Request) -> Response:
        if view not in QUESTIONS:
            return JSONResponse({"error": f"there is no question called {view!r}"[:200]}, 404)
        arguments = _arguments(view, request)
        if view in _STEADY:
            if view not in known:
                await _remember(view)
            return Response(known[view], media_type="application/json")
        if view == "guess":
            arguments["folder"] = str(kept.place(arguments.pop("kept", "")))
        return JSONResponse(await _ask(view, arguments, request))

    @app.get("/figure/{chapter}/{study}/{preset}/{name}")
    async def figure(chapter: str, study: str, preset: str, name: str) -> Response:
        found = await pool.ask("figure", {"study": f"{chapter}/{study}", "preset": preset, "name": name})
        if not found["svg"]:
            return JSONResponse({"error": "there is no such figure"}, 404)
        return Response(found["svg"], media_type="image/svg+xml")

    add_job_routes(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _refusal(request: Request, hosts: tuple[str, ...], token: str, private: bool) -> JSONResponse | None:
    """Why a request is not answered: another host's name, another page, a change without the page's token."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if hosts and host not in hosts:
        return JSONResponse({"error": "this server answers to its own address only"}, 421)
    if origin is not None and origin != f"http://{host}":
        return JSONResponse({"error": "another page may not ask"}, 403)
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not _followed(request):
        return JSONResponse({"error": "another page may not ask"}, 403)
    shared = request.url.path.startswith("/static/")
    if request.method not in ("GET", "HEAD") or (private and not shared):
        given = request.headers.get("x-sandlab-token", "") or request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return JSONResponse({"error": "a change needs the token of the page"}, 403)
    return None


def _followed(request: Request) -> bool:
    """A link to the page was followed, such as one of the static report: the page opens, its finder cannot read it."""
    kind = (request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest"))
    return request.method == "GET" and request.url.path == "/" and kind == ("navigate", "document")


def _arguments(view: str, request: Request) -> dict[str, Any]:
    """Arguments of a view, read from the address by their kind; an unknown one is refused."""
    readers, found = QUESTIONS[view], {}
    for name, text in request.query_params.items():
        if name == "token":
            continue
        if name not in readers:
            raise BadInput(f"{view} is not asked for {name!r}"[:200])
        if len(text) > 8000:
            raise BadInput(f"{name} is too long")
        try:
            found[name] = readers[name](text)
        except (ValueError, TypeError):
            raise BadInput(f"{name} cannot be read: {text[:80]!r}") from None
    return found


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _texts(text: str) -> dict[str, str]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("settings are an object")
    return {str(name): str(value) for name, value in found.items()}


def serve(*, host: str = "127.0.0.1", port: int = 8000, store: Path | None = None, token: str = "") -> None:
    """Serve until Ctrl-C; answers only to this machine's own names unless told otherwise."""
    import uvicorn

    alone = host in ("127.0.0.1", "localhost")
    names = {"localhost", "127.0.0.1"} if alone else {host}
    hosts = tuple(f"{name}:{port}" for name in names)
    app = create_app(store=store, hosts=hosts if alone else (), token=token, private=not alone)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, limit_concurrency=200)


def refuse_taken_port(host: str, port: int) -> None:
    """Say at once that a port is in use."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError as problem:
            why = problem.strerror
            raise BadInput(f"port {port} of {host} cannot be used ({why}): try --port {port + 1}") from None
