"""The scripts and styles that ship with the pages: read once, and again where a file has changed."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

__all__ = ["Shipped"]

_KINDS = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".txt": "text/plain"}


class Shipped:
    """Files below a folder, found among those there are: what is asked for is never used as a path."""

    def __init__(self, folder: Path) -> None:
        self.files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    def text(self, name: str) -> str:
        return self._content(name)[0].decode()

    def answer(self, name: str, request: Request) -> Response:
        """The file, or that the one the browser has kept is still the same."""
        if name not in self.files:
            return JSONResponse({"error": "there is no such file"}, 404)
        content, tag = self._content(name)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_KINDS[self.files[name].suffix], headers=headers)

    def _content(self, name: str) -> tuple[bytes, str]:
        file = self.files[name]
        return _read(file, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=128)
def _read(file: Path, _changed: int) -> tuple[bytes, str]:
    """Content of a file and the tag by which a browser knows it."""
    content = file.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
