"""The front door is typed: stubs are current, misspelt names are type errors, editors complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

WRONG = {
    "sl.worlds.InContextMarkvo(states=3)": "InContextMarkvo",
    "sl.worlds.InContextMarkov(stats=3)": "stats",
    "sl.models.Transformer(vocb=3)": "vocb",
    "sl.models.LSTM(vocab=3, widht=4)": "widht",
    "sl.learning.train(sl.models.Transformer(vocab=3, length=4), sl.worlds.Dyck(), setps=3, rng=sl.rng(0))": "setps",
    "sl.lenses.acuracy": "acuracy",
}


def test_the_stubs_are_current_and_no_name_is_exported_twice() -> None:
    script = REPOSITORY / "scripts" / "front_door.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Reading the types of these takes mypy a minute; the names and the options of SandLab's own rooms need none of them.
LIBRARIES = ("datasets", "matplotlib", "networkx", "numpy", "pyarrow", "pydantic", "ray", "rich", "scipy", "sklearn")
LIBRARIES += ("safetensors", "starlette", "sympy", "torch", "transformer_lens", "transformers", "typer")


@pytest.mark.parametrize("unread", [LIBRARIES, pytest.param((), marks=pytest.mark.slow)], ids=["rooms", "whole"])
def test_mypy_rejects_misspelt_names_and_accepts_the_readme(tmp_path: Path, unread: tuple[str, ...]) -> None:
    """One run of mypy over a file with one wrong line per case, and over the README's Python."""
    lines = ["import sandlab as sl", *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (tmp_path / "readme.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)))
    settings = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    if unread:
        modules = [f"{name}.*" for name in unread]
        settings += f'\n[[tool.mypy.overrides]]\nmodule = {modules}\nfollow_imports = "skip"\n'
    (tmp_path / "settings.toml").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", str(tmp_path / "settings.toml")]
    command += ["--cache-dir", str(tmp_path / "cache"), str(tmp_path / "wrong.py"), str(tmp_path / "readme.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert "readme.py" not in done.stdout, done.stdout
    for number, (line, word) in enumerate(WRONG.items(), start=2):
        said = [each for each in done.stdout.splitlines() if f"wrong.py:{number}:" in each and ": error:" in each]
        assert said and word in " ".join(said), f"{line} was accepted:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("sl.worlds.InCon", "InContextMarkov"), ("sl.models.Trans", "Transformer"), ("sl.learning.Popul", "Population")],
)
def test_an_editor_completes_the_names_of_a_room(text: str, expected: str) -> None:
    jedi = pytest.importorskip("jedi")
    script = jedi.Script(f"import sandlab as sl\n{text}", project=jedi.Project(REPOSITORY))
    assert expected in [each.name for each in script.complete(2, len(text))]


def test_the_command_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "sandlab", "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)
