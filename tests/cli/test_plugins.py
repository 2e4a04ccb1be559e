"""One's own files work everywhere a built-in does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandlab.cli import call

REPOSITORY = Path(__file__).resolve().parents[2]
MODULE = """
from torch import nn
class MyGRU(nn.Module):
    def __init__(self, vocab, width=8):
        super().__init__()
        self.embed, self.core = nn.Embedding(vocab, width), nn.GRU(width, width, batch_first=True)
        self.read = nn.Linear(width, vocab)
    def forward(self, x):
        return self.read(self.core(self.embed(x))[0])
class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(__import__("torch").zeros(1))
    def forward(self, x):
        return self.weight * x
"""


def terminal(*words: str, folder: Path, code: int = 0, **environment: str) -> str:
    """What a command prints, in a folder of its own."""
    options = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SANDLAB_STORE": str(folder / "runs")}
    options |= {"PYTHONSAFEPATH": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-m", "sandlab", *words], cwd=folder, env=options, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says, called in this process as if no plug-in had been loaded before; refused unless told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("SANDLAB_PLUGINS", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sandlab.plugins._loaded", {})
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def give(*words: str, code: int = 2) -> str:
        assert call([*words]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return give


def python(script: str, folder: Path, **environment: str) -> str:
    options = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=options, capture_output=True, text=True, timeout=300
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("world", "my-coin"),
        pytest.param("model", "my-gru", marks=pytest.mark.slow),
        pytest.param("circuit", "my-head", marks=pytest.mark.slow),
        pytest.param("lens", "my-entropy", marks=pytest.mark.slow),
    ],
)
def test_a_new_file_is_listed_and_passes_its_own_test(kind: str, name: str, tmp_path: Path) -> None:
    terminal("new", kind, name, folder=tmp_path)
    file = name.replace("-", "_") + ".py"
    assert name in terminal("show", name, "--plugin", file, folder=tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{file}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exists already" in terminal("new", kind, name, folder=tmp_path, code=2)


@pytest.mark.slow  # the run alone, in this process: test_newcomer.py
def test_a_new_study_runs_in_processes_and_is_listed(tmp_path: Path) -> None:
    terminal("new", "study", "mine/first-try", folder=tmp_path)
    said = terminal("run", "mine/first-try", "--plugin", "first_try.py", "--on", "processes:2", folder=tmp_path)
    assert "mine/first-try.learns" in said and "holds" in said
    assert "mine/first-try" in terminal("list", "mine", folder=tmp_path, SANDLAB_PLUGINS="first_try.py")


def test_a_new_study_passes_its_own_test(tmp_path: Path) -> None:
    terminal("new", "study", "mine/first-try", folder=tmp_path)
    sys.path.insert(0, str(tmp_path))
    try:
        import test_first_try  # type: ignore[import-not-found]

        test_first_try.test_the_claim_can_hold_and_can_fail()
    finally:
        sys.path.remove(str(tmp_path))


def test_any_module_is_trained_by_its_place(tmp_path: Path, here: Callable[..., str]) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    settings = ["--set", "world.length=8", "--set", "steps=3", "--set", "model.width=4"]
    said = here("train", "--world", "in-context-markov", "--model", "mine.py:MyGRU", *settings, code=0)
    assert "the best possible" in said
    wrong = here("train", "--world", "dyck", "--model", "mine.py:Wrong")
    assert "logits" in wrong and "Traceback" not in wrong
    assert "did you mean 'MyGRU'" in here("train", "--world", "dyck", "--model", "mine.py:MyGru")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plugin", "nowhere.py"], "there is no file"),
        (["--plugin", "broken.py"], "cannot be loaded: ZeroDivisionError"),
        (["--plugin", "json.py"], "has the name of another module"),
        (["--plugin"], "--plugin needs a file"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_is_told_in_one_sentence(
    words: list[str], said: str, tmp_path: Path, here: Callable[..., str]
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "json.py").write_text("import collections\n")
    printed = here("list", "worlds", *words)
    assert said in printed and "Traceback" not in printed


def test_an_installed_package_brings_its_own(tmp_path: Path) -> None:
    """A package names its modules in the entry-point group `sandlab`; nothing has to be given at the terminal."""
    package, about = tmp_path / "site" / "coins", tmp_path / "site" / "coins-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    terminal("new", "world", "packed-coin", folder=tmp_path)
    (tmp_path / "packed_coin.py").rename(package / "one.py")
    (package / "__init__.py").touch()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: coins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[sandlab]\none = coins.one\n")
    path = os.pathsep.join([str(REPOSITORY), str(tmp_path / "site")])
    assert "PackedCoin(" in terminal("sample", "packed-coin", "-n", "1", folder=tmp_path, PYTHONPATH=path)


def test_commands_to_be_copied_name_the_plug_in(tmp_path: Path, here: Callable[..., str]) -> None:
    here("new", "study", "mine/look", code=0)
    assert "sandlab run mine/look --plugin look.py" in here("show", "mine/look", "--plugin", "look.py", code=0)


def test_a_saved_model_does_not_load_a_file_by_itself(tmp_path: Path, here: Callable[..., str]) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    settings = ["--set", "world.length=8", "--set", "steps=1"]
    here("train", "--world", "in-context-markov", "--model", "mine.py:MyGRU", *settings, code=0)
    (folder,) = (tmp_path / "runs" / "training").glob("*/model")
    script = f"""
import sandlab as sl, sandlab.plugins
try:
    sl.models.load({str(folder)!r})
except sl.BadInput as problem:
    print(problem)
sandlab.plugins.add("mine.py")
print(sl.models.load({str(folder)!r}).parameter_count())
"""
    first, second = python(script, tmp_path, SANDLAB_PLUGINS="").splitlines()
    assert "mine.py is not loaded" in first and second.isdigit()


STUDY = """
from dataclasses import dataclass
import numpy as np
import sandlab as sl
from sandlab.studies.claims import Mean
from sandlab.studies.study import Study

@dataclass(frozen=True)
class Settings:
    seeds: int = 3

@dataclass(frozen=True)
class Results:
    values: np.ndarray

@dataclass(frozen=True)
class Draw:
    seed: int

def draw(config: Draw) -> float:
    return float(np.random.default_rng(config.seed).random())

study = Study("mine/draws", title="t", source="s", quick=Settings(), full=Settings(), null=Settings(1))

@study.collect
def collect(settings, lab) -> Results:
    return Results(np.array(lab.map(draw, [Draw(seed) for seed in range(settings.seeds)])))

@study.claim(Mean(between=(-1.0, 2.0)))
def inside(results):
    '''Draws are between -1 and 2.

    A draw.
    '''
    return results.values
"""
CALL = "print(sl.run(study, store='runs', on={on!r}, progress=False).findings[0].verdict)"


def test_a_study_in_a_script_runs_with_processes_too(tmp_path: Path) -> None:
    guarded = f"{STUDY}\nif __name__ == '__main__':\n    {CALL.format(on='processes:2')}"
    assert "holds" in python(guarded, tmp_path)


def test_a_script_without_its_main_guard_is_told_once(tmp_path: Path) -> None:
    said = python(f"{STUDY}\n{CALL.format(on='processes:2')}", tmp_path)
    assert '`if __name__ == "__main__":`' in said and "tried again" not in said


def test_a_study_of_a_notebook_runs_and_refuses_other_processes(tmp_path: Path) -> None:
    cell = f"""
import linecache, sys
main = sys.modules["__main__"]
del main.__file__
def run_cell(number, text):
    name = f"<cell {{number}}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), vars(main))
run_cell(1, {STUDY!r})
run_cell(2, {CALL.format(on="local")!r})
run_cell(3, {CALL.format(on="processes:2").replace("runs", "other")!r})
"""
    said = python(cell, tmp_path)
    assert "holds" in said and "use on='local'" in said
