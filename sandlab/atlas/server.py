"""The atlas's server: loopback only, its own pages only, and nothing that a page sends is executed or opened."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandlab.atlas.answers import Answers
from sandlab.atlas.job_routes import job_routes
from sandlab.atlas.jobs import Jobs
from sandlab.atlas.questions import QUESTIONS, read_arguments
from sandlab.atlas.shipped import Shipped
from sandlab.atlas.workers import TooSlow
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


def create_app(
    *, store: Path | None = None, hosts: tuple[str, ...] = (), token: str = "", private: bool = False, workers: int = 2
) -> Starlette:
    """The application.

    hosts     values of the Host header that are answered, such as "127.0.0.1:8000"; empty: any
    private   others can reach the address: the page itself and every answer need the token (?token=… opens the page)
    """
    token = token or secrets.token_urlsafe(24)
    folder = Path(store or os.environ.get("SANDLAB_STORE") or "runs")
    answers = Answers(folder, workers)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.jobs = Jobs(folder)
        warm = asyncio.create_task(answers.warm_up())
        yield
        warm.cancel()
        app.state.jobs.close()
        answers.pool.close()

    app = Starlette(
        routes=[*_questions(answers, token), *job_routes()],
        middleware=[Middleware(_Guard, hosts=hosts, token=token, private=private)],
        exception_handlers={BadInput: _bad, TooSlow: _slow, HTTPException: _unknown},
        lifespan=life,
    )
    app.state.kept, app.state.ask = answers.kept, answers.pool.ask
    return app


class _Guard:
    """Nothing is answered before the asker is known to be the page; every answer carries the policy."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], token: str, private: bool) -> None:
        self.app, self.hosts, self.token, self.private = app, hosts, token, private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = _refusal(Request(scope), self.hosts, self.token, self.private)
        await (refusal or self.app)(scope, receive, with_policy)


async def _bad(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"error": str(problem)}, 400)


async def _slow(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"error": str(problem)}, 503)


async def _unknown(_request: Request, problem: Exception) -> JSONResponse:
    """No such address, or not asked in this way."""
    assert isinstance(problem, HTTPException)
    return JSONResponse({"error": problem.detail}, problem.status_code, problem.headers)


def _questions(answers: Answers, token: str) -> list[Route]:
    """The page itself, what ships with it, its questions, and the recorded figures."""
    shipped = Shipped(STATIC)

    async def page(_request: Request) -> HTMLResponse:
        return HTMLResponse(shipped.text("index.html").replace("{{token}}", token))

    async def static(request: Request) -> Response:
        return shipped.answer(request.path_params["name"], request)

    async def answer(request: Request) -> Response:
        view = request.path_params["view"]
        if view not in QUESTIONS:
            return JSONResponse({"error": f"there is no question called {view!r}"[:200]}, 404)
        arguments = read_arguments(view, request.query_params.items())
        return Response(await answers.answer(view, arguments, request), media_type="application/json")

    async def figure(request: Request) -> Response:
        asked = request.path_params
        study = f"{asked['chapter']}/{asked['study']}"
        found = await answers.pool.ask("figure", {"study": study, "preset": asked["preset"], "name": asked["name"]})
        if not found["svg"]:
            return JSONResponse({"error": "there is no such figure"}, 404)
        return Response(found["svg"], media_type="image/svg+xml")

    return [
        Route("/", page),
        Route("/static/{name:path}", static),
        Route("/api/{view}", answer),
        Route("/figure/{chapter}/{study}/{preset}/{name}", figure),
    ]


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
            return JSONResponse(
                {"error": "a change needs the token of the page: if the server was started anew, load the page again"},
                403,
            )
    return None


def _followed(request: Request) -> bool:
    """A link to the page was followed, such as one of the static report: the page opens, its finder cannot read it."""
    kind = (request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest"))
    return request.method == "GET" and request.url.path == "/" and kind == ("navigate", "document")


def serve(*, host: str = "127.0.0.1", port: int = 8000, store: Path | None = None, token: str = "") -> None:
    """Serve until Ctrl-C; answers only to this machine's own names unless told otherwise."""
    import uvicorn

    alone = host in ("127.0.0.1", "localhost")
    names = {"localhost", "127.0.0.1"} if alone else {host}
    hosts = tuple(f"{name}:{port}" for name in names)
    app = create_app(store=store, hosts=hosts if alone else (), token=token, private=not alone)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, ws="none", limit_concurrency=200)


def refuse_taken_port(host: str, port: int) -> None:
    """Say at once that a port is in use."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError as problem:
            why = problem.strerror
            raise BadInput(f"port {port} of {host} cannot be used ({why}): try --port {port + 1}") from None
