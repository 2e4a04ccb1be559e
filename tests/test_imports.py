"""The rooms import only downwards, only the laboratory touches the disk, and starting up costs little."""

from __future__ import annotations

import ast
import functools
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import sandlab

PACKAGE = Path(sandlab.__file__).parent
BASE = {
    "plugins",
    "errors",
    "_fitting",
    "_explaining",
    "_memory",
    "checking",
    "_door",
    "files",
    "registry",
    "random",
    "figures",
    "progress",
}
BASE |= {"__version__"}
ORDER = ["circuits", "learning", "decoding", "lenses", "studies", "lab", "atlas"]
BELOW = {
    "worlds": BASE,
    "models": BASE,
    **{room: BASE | {"worlds", "models"} | set(ORDER[:place]) for place, room in enumerate(ORDER)},
}
MAY_WRITE = {"lab", "atlas", "cli"}
WRITES_AT_THE_USERS_CALL = {"files.py", "worlds/export.py", "models/io.py", "models/hugging_face.py"} | {
    "learning/_engine/checkpoints.py",
    "learning/distillation/checkpoint_store.py",
}
WRITING = {"write_text", "write_bytes", "mkdir", "unlink", "savefig", "save_file", "to_parquet", "rename", "rmtree"}
NETWORK = {"socket", "urllib", "http", "requests", "starlette", "uvicorn", "aiohttp", "httpx"}
USES_NETWORK = {"atlas", "lab"}  # the laboratory knocks at a cluster's door


def rooms() -> list[str]:
    return [room for room in BELOW if any((PACKAGE / room).rglob("*.py"))]


@functools.cache
def nodes_of(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@functools.cache
def imported(file: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of every import in a file, those inside functions and uses such as `sl.worlds` included."""
    package = "sandlab." + ".".join(file.relative_to(PACKAGE).parent.parts)
    nodes = nodes_of(file)
    found, whole = [], set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(node.lineno, name.name) for name in node.names]
            whole |= {name.asname or name.name for name in node.names if name.name == "sandlab"}
        elif isinstance(node, ast.ImportFrom):
            parents = package.rstrip(".").split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [(node.lineno, f"{module}.{name.name}") for name in node.names]
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            found.append((node.lineno, f"sandlab.{node.attr}"))
    return found


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_from_the_rooms_below_it(room):
    wrong = []
    for file in sorted((PACKAGE / room).rglob("*.py")):
        for line, name in imported(file):
            parts = name.split(".")
            if parts[0] != "sandlab" or len(parts) < 2:
                continue
            reads_as_terminal = room == "atlas" and parts[1] == "cli"  # the page reads settings as the terminal does
            if parts[1] != room and parts[1] not in BELOW[room] and not reads_as_terminal:
                wrong.append(f"{file.relative_to(PACKAGE)}:{line} imports {name}")
    assert wrong == []


def test_nothing_imports_the_terminal_and_the_foundations_import_no_room():
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).parts
        for line, name in imported(file):
            parts = name.split(".")
            if parts[0] != "sandlab" or len(parts) < 2:
                continue
            foundation = place[0].removesuffix(".py") in BASE
            terminal = parts[1] == "cli" and place[0] not in ("cli", "atlas", "__main__.py")
            if terminal or (foundation and parts[1] not in BASE):
                wrong.append(f"{'/'.join(place)}:{line} imports {name}")
    assert wrong == []


def test_only_the_laboratory_writes_files():
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[0] in MAY_WRITE or place.as_posix() in WRITES_AT_THE_USERS_CALL:
            continue
        for node in nodes_of(file):
            if isinstance(node, ast.Call):
                method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if method in WRITING or _opens_for_writing(node):
                    wrong.append(f"{place}:{node.lineno} {method or 'open'}")
    assert wrong == []


def _opens_for_writing(call: ast.Call) -> bool:
    if not (isinstance(call.func, ast.Name) and call.func.id == "open"):
        return False
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def test_only_the_atlas_and_the_laboratory_use_the_network():
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        names = {name.partition(".")[0] for _, name in imported(file)}
        if names & NETWORK and place.parts[0] not in USES_NETWORK:
            wrong.append(f"{place}: {sorted(names & NETWORK)}")
    assert wrong == []


@pytest.mark.parametrize("code", ["import sandlab", "from sandlab.cli import call; call(['--help'])"])
def test_starting_up_takes_less_than_half_a_second_and_loads_nothing_heavy(code):
    heavy = ["torch", "numpy", "scipy", "matplotlib", "pyarrow", "ray", "pydantic", "transformers", "sklearn", "sympy"]
    check = f"{code}\nimport sys\nprint([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, env=os.environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stderr.strip() == "[]"
        # CPU seconds: what a machine with nothing else to do would take.
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert best < 0.5


def test_steps_is_the_field_of_trainings_alone() -> None:
    """Settings that train hold a `Training`; counts of anything else have names of their own."""
    holders = {
        node.name
        for file in PACKAGE.rglob("*.py")
        for node in nodes_of(file)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id == "steps"
    }
    assert holders == {"Training", "Loop", "History", "Member", "Queue", "Sharpening"}


def test_no_folder_has_more_than_fifteen_files() -> None:
    folders = {file.parent for file in PACKAGE.rglob("*.py")}
    crowded = {str(folder): len(list(folder.glob("*.py"))) for folder in folders}
    assert not {folder: count for folder, count in crowded.items() if count > 15}


def test_types_say_any_fewer_than_150_times_outside_studies_and_terminal() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in ("studies", "cli")]
    found = sum(isinstance(node, ast.Name) and node.id == "Any" for file in files for node in nodes_of(file))
    assert found < 150
