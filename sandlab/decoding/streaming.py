"""Text while it is being written, one piece after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any

from sandlab.decoding.generators.hugging_face import Chat
from sandlab.decoding.results import Decoded
from sandlab.decoding.text import decode_text

__all__ = ["Piece", "stream_text"]


@dataclass(frozen=True)
class Piece:
    """A change of one text: first `erased` characters are taken off its end, then `text` is written.

    row      the number of the sample, in the order in which `decode_text` returns them
    result   at the last piece of a row, what `decode_text` would have returned
    """

    row: int
    text: str = ""
    erased: int = 0
    result: Decoded | None = None


def stream_text(
    model: object, prompts: str | Chat | Sequence[str] | Sequence[Chat], **settings: Any
) -> Iterator[Piece]:
    """`decode_text`, piece by piece while it is written; algorithms that go back take text back.

    >>> for piece in stream_text("my-model/", "Describe Ada: ", json_schema={"type": "object"}):
    ...     print(piece.text, end="", flush=True)

    A piece never ends within a character. The last piece of each sample brings its `result`; a stop string may have
    been shown and is taken back there. Another thread decodes: errors are raised here.
    """
    news: SimpleQueue[Piece | BaseException | None] = SimpleQueue()
    shown = _Shown(news)

    def work() -> None:
        try:
            for row, result in enumerate(decode_text(model, prompts, listener=shown.show, **settings)):
                shown.show(row, result.text, result)
            news.put(None)
        except BaseException as problem:
            news.put(problem)

    thread = Thread(target=work, daemon=True)
    thread.start()
    while (piece := news.get()) is not None:
        if isinstance(piece, BaseException):
            raise piece
        yield piece
    thread.join()


class _Shown:
    """What the reader has been shown of each row."""

    def __init__(self, news: SimpleQueue[Piece | BaseException | None]) -> None:
        self.news = news
        self.texts: dict[int, str] = {}

    def show(self, row: int, text: str, result: Decoded | None = None) -> None:
        before = self.texts.get(row, "")
        same = 0
        while same < min(len(before), len(text)) and before[same] == text[same]:
            same += 1
        if text != before or result is not None:
            self.news.put(Piece(row, text[same:], len(before) - same, result))
        self.texts[row] = text
