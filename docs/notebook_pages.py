"""Notebooks as pages, and a small kernel that runs them: no Jupyter is needed to build or to test.

python docs/notebook_pages.py            run every notebook and keep what it printed and drew
python docs/notebook_pages.py NAME …     only these
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import linecache
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "notebooks"
Cell = dict[str, Any]


def names() -> list[str]:
    """Every notebook, in reading order."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[Cell]:
    found: list[Cell] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return found


def run(name: str) -> tuple[dict[str, Any], list[list[Cell]]]:
    """Execute the code cells in order, as Jupyter would: the names that are left, and the outputs of each cell."""
    space: dict[str, Any] = {"__name__": "__main__"}
    with inside_a_new_folder():
        outputs = [
            _execute("".join(c["source"]), space, f"<{name}[{n}]>") for n, c in enumerate(cells(name)) if _code(c)
        ]
    return space, outputs


@contextlib.contextmanager
def inside_a_new_folder() -> Iterator[None]:
    """What a notebook writes is thrown away."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _code(cell: Cell) -> bool:
    return bool(cell["cell_type"] == "code")


def _execute(source: str, space: dict[str, Any], where: str) -> list[Cell]:
    """Run one cell; what it prints, and the value of a last line that is an expression."""
    linecache.cache[where] = (len(source), None, _lines(source), where)  # where a study looks for its own source
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), space)
        value = eval(compile(ast.Expression(last.value), where, "eval"), space) if isinstance(last, ast.Expr) else None
    shown = [{"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}]
    return [*(shown if printed.getvalue() else []), *([_shown(value)] if value is not None else [])]


def _shown(value: Any) -> Cell:
    """A value as Jupyter stores it: figures as SVG, reports as HTML, everything else as text."""
    if isinstance(value, Figure):
        buffer = io.BytesIO()
        value.savefig(buffer, format="svg", metadata={"Date": None})
        data = {"image/svg+xml": _lines(buffer.getvalue().decode()), "text/plain": ["a figure"]}
    elif hasattr(value, "_repr_html_"):
        data = {"text/html": _lines(value._repr_html_()), "text/plain": _lines(f"a report of {value.study}")}
    else:
        data = {"text/plain": _lines(repr(value))}
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def keep(name: str) -> None:
    """Run a notebook and write its outputs into its file."""
    path = FOLDER / f"{name}.ipynb"
    document = json.loads(path.read_text(encoding="utf-8"))
    outputs = iter(run(name)[1])
    for number, cell in enumerate((cell for cell in document["cells"] if _code(cell)), start=1):
        cell["outputs"], cell["execution_count"] = next(outputs), number
        for output in cell["outputs"]:
            output |= {"execution_count": number} if output["output_type"] == "execute_result" else {}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page(name: str) -> str:
    """The notebook as Markdown: text, code, and what the code printed and drew."""
    parts = []
    for cell in cells(name):
        source = "".join(cell["source"])
        if not _code(cell):
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + f"\n\n[Download the notebook]({name}.ipynb)\n"


def _output(output: Cell) -> str:
    if output["output_type"] == "stream":
        return "```text\n" + "".join(output["text"]).rstrip() + "\n```"
    data = output["data"]
    if "image/svg+xml" in data:
        encoded = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f'<img src="data:image/svg+xml;base64,{encoded}" alt="figure">'
    if "text/html" in data:
        return '<div class="report">' + "".join("".join(data["text/html"]).splitlines()) + "</div>"
    return "```text\n" + "".join(data["text/plain"]) + "\n```"


def pages() -> dict[str, str]:
    """Path → Markdown of every notebook and of their list."""
    made = {f"notebooks/{name}.md": page(name) for name in names()}
    rows = "\n".join(f"| [{title(name)}]({name}.md) | [{name}.ipynb]({name}.ipynb) |" for name in names())
    text = (
        "# Notebooks\n\nEach runs in seconds on a laptop and is run by the tests. Open one in Jupyter, or read it here."
    )
    return {"notebooks/index.md": f"{text}\n\n| notebook | file |\n|---|---|\n{rows}\n", **made}


def title(name: str) -> str:
    return "".join(cells(name)[0]["source"]).splitlines()[0].lstrip("# ")


if __name__ == "__main__":
    for each in sys.argv[1:] or names():
        keep(each)
        print(each)
