"""The terminal: what commands print, what they refuse, and with which exit code."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

import sandlab as sl
from sandlab.cli import app, call, settings
from sandlab.cli.settings import convert, pairs, read_settings, read_value, under
from sandlab.errors import BadInput
from sandlab.studies.claims import Mean

LAB_TESTS = Path(__file__).parents[1] / "lab"
COMMANDS = [
    "compile",
    "list",
    "show",
    "sample",
    "run",
    "claims",
    "tour",
    "train",
    "report",
    "publish",
    "coverage",
    "bench",
]


@pytest.fixture(autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def toys():
    sys.path.insert(0, str(LAB_TESTS))
    import toys

    return toys


def answer(capsys, *arguments: str, code: int = 0):
    """Run a command; its exit code must be `code`. Returns what it printed, parsed when it is JSON."""
    assert call(list(arguments)) == code, capsys.readouterr()
    printed = capsys.readouterr()
    return json.loads(printed.out) if "--json" in arguments else printed.out + printed.err


def test_every_command_teaches_with_an_example(capsys):
    for command in ["", *COMMANDS]:
        text = answer(capsys, *[command][: len(command)], "--help")
        assert command in text
        assert "sandlab" in text
        assert "Example:" in text or not command
    names = {each.name or each.callback.__name__ for each in app.registered_commands}
    assert set(COMMANDS) <= names


def test_the_version_is_the_packages_own(capsys):
    assert answer(capsys, "--version").strip() == sl.__version__


def test_list_shows_a_chapter_of_every_room(capsys):
    found = answer(capsys, "list", "flip-flop", "--json")
    assert set(found) >= {"worlds", "circuits", "lenses", "studies"} and "flip-flop" in found["worlds"]
    assert all(name.startswith("flip-flop/") for name in found["studies"]) and "dyck" not in found["worlds"]


def test_help_breaks_no_line_before_its_end(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert "flip-flops and their tails, parity, groups, brackets, majority" in " ".join(
        line.strip() for line in answer(capsys, "card", "--help").splitlines()
    )
    assert "groups,\n" not in answer(capsys, "card", "--help").replace(" \n", "\n").replace("  ", " ")


def test_list_names_everything_that_is_registered(capsys):
    found = answer(capsys, "list", "--json")
    for kind in ("worlds", "models", "circuits", "decoders", "lenses", "studies"):
        assert list(found[kind]) == sl.names(kind)
    text = answer(capsys, "list", "worlds")
    assert "dyck" in text and "Balanced brackets" in text


def test_show_gives_text_parameters_and_claims(capsys, toys):
    text = answer(capsys, "show", "dyck")
    assert "Balanced brackets" in text and "depth" in text and "sandlab.worlds.dyck.language.Dyck" in text
    text = answer(capsys, "show", "toy/uniform")
    assert "E[U] = 1/2" in text and "The mean is one half" in text and "sandlab run toy/uniform" in text
    (facts,) = answer(capsys, "show", "toy/uniform", "--json")
    assert facts["presets"]["full"]["seeds"] == "12"
    (facts,) = [each for each in answer(capsys, "show", "transformer", "--json") if each["kind"] == "models"]
    assert facts["parameters"][0] | {"meaning": ""} == {
        "name": "vocab",
        "type": "int",
        "default": "required",
        "meaning": "",
    }


def test_sample_prints_renders_and_exports(capsys, tmp_path):
    text = answer(capsys, "sample", "dyck", "-n", "3", "--set", "length=12")
    assert len([line for line in text.splitlines() if line.startswith("^")]) == 3
    data = answer(capsys, "sample", "dyck", "-n", "2", "--set", "length=12", "--seed", "5", "--json")
    batch = sl.worlds.Dyck(length=12).sample(2, rng=sl.rng(5))
    assert data["inputs"] == batch.inputs.tolist()
    answer(capsys, "sample", "dyck", "-n", "7", "--to", "data.parquet")
    assert len(sl.worlds.read_parquet(tmp_path / "data.parquet")) == 7


def test_every_world_that_needs_no_setting_can_be_sampled(capsys):
    for name in sl.names("worlds"):
        code = call(["sample", name, "-n", "2"])
        printed = capsys.readouterr()
        assert code == 0 or "needs" in printed.err or "made in Python" in printed.err, (name, printed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sho"], "did you mean 'show'"),
        (["list", "world"], "did you mean 'worlds'"),
        (["show", "dyk"], "did you mean 'dyck'"),
        (["sample", "dykc"], "did you mean 'dyck'"),
        (["sample", "dyck", "-n", "0"], "-n must be a whole number of at least 1"),
        (["sample", "dyck", "-n", "x"], "this was given: sample dyck -n x"),
        (["sample", "dyck", "--set", "lenght=3"], "did you mean 'length'"),
        (["sample", "dyck", "--set", "length=three"], "length must be a whole number, got 'three'"),
        (["sample", "dyck", "--set", "length=2.5"], "length must be a whole number, got '2.5'"),
        (["sample", "dyck", "--set", "types=-1"], "types must be"),
        (["sample", "dyck", "--set", "length"], "name=value"),
        (["sample", "dyck", "--set", "length=__import__('os').abort()"], "length must be a whole number"),
        (["sample", "dyck", "--to", "data.csv"], ".parquet"),
        (["run"], "name a study, or --all"),
        (["run", "markov/weight-tyin"], "did you mean 'markov/weight-tying'"),
        (["run", "toy/uniform", "--set", "sise=3"], "did you mean 'size'"),
        (["run", "toy/uniform", "--seeds", "0"], "seeds must be"),
        (["run", "toy/uniform", "--device", "tpu"], "device must be one of"),
        (["run", "toy/uniform", "--on", "rai"], "did you mean 'ray'"),
        (["run", "toy/uniform", "--set", "size=0", "--on", "local"], "size must be"),
        (["report"], "no finished run"),
        (["publish", "toy/uniform"], "no finished run"),
        (["train", "--world", "dyck", "--model", "transfromer"], "did you mean"),
        (["train", "--world", "dyck", "--set", "model.widht=3"], "did you mean 'width'"),
        (["train", "--world", "dyck", "--set", "stepps=3"], "did you mean 'steps'"),
        (["bench", "startupp"], "did you mean 'startup'"),
        (["coverage", "--folder", "nowhere"], "no coverage tables"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_and_exit_code_two(capsys, toys, arguments, words):
    text = answer(capsys, *arguments, code=2)
    assert words in text
    assert "Traceback" not in text


def test_run_judges_claims_and_says_where_the_figures_are(capsys, toys, tmp_path):
    text = answer(capsys, "run", "toy/uniform", "--on", "local")
    assert "✓ holds" in text and "✗ fails" in text and str(tmp_path / "runs") in text
    assert "6 jobs computed" in text
    assert "finished before" in answer(capsys, "run", "toy/uniform")
    (data,) = answer(capsys, "run", "toy/*", "--seeds", "7", "--set", "size=1000", "--json")
    assert data["jobs"] == {"jobs": 7, "cached": 6, "computed": 1, "retried": 0}
    assert [finding["verdict"] for finding in data["findings"]] == ["holds", "fails"]
    (data,) = answer(capsys, "run", "toy/uniform", "--fresh", "--on", "local", "--json")
    assert data["jobs"]["computed"] == 6
    (data,) = answer(capsys, "run", "toy/uniform", "--full", "--set", "size=900", "--on", "local", "--json")
    assert data["preset"] == "custom" and len(data["findings"][0]["values"]) == 12


def test_a_claim_that_fails_although_its_source_says_it_holds_gives_exit_code_one(capsys, toys, monkeypatch):
    wrong = dataclasses.replace(toys.study.claims[0], relation=Mean(below=0.1))
    monkeypatch.setattr(toys.study, "claims", (wrong, toys.study.claims[1]))
    assert "✗ fails" in answer(capsys, "run", "toy/uniform", "--on", "local", code=1)
    assert "All findings" in answer(capsys, "run", "toy/uniform", "toy/*", "nce/landscape", "--on", "local", code=1)
    assert "✗ fails" in answer(capsys, "claims", "toy/uniform", code=1)


def test_a_claim_that_fails_on_the_null_is_no_surprise(capsys, toys, monkeypatch):
    wrong = dataclasses.replace(toys.study.claims[0], relation=Mean(below=0.1))
    monkeypatch.setattr(toys.study, "claims", (wrong, toys.study.claims[1]))
    monkeypatch.setattr(toys.study, "presets", {**toys.study.presets, "null": toys.study.presets["quick"]})
    assert "✗ fails" in answer(capsys, "run", "toy/uniform", "--null", "--on", "local")


def test_a_job_that_breaks_gives_exit_code_three_and_does_not_stop_other_studies(capsys, toys):
    text = answer(capsys, "run", "toy/uniform", "--set", "trouble=raise", "--on", "local", code=3)
    assert "toy/uniform could not finish" in text and "seed=3" in text


def test_a_full_disk_gives_exit_code_three_and_a_sentence(capsys, toys, monkeypatch):
    from sandlab.lab._store.cache import Cache
    from sandlab.lab._store.files import StoreFull

    def full(*_anything):
        raise StoreFull("no room to write")

    monkeypatch.setattr(Cache, "write", full)
    text = answer(capsys, "run", "toy/uniform", "--on", "local", code=3)
    assert text.endswith("sandlab: no room to write\n")


def test_claims_show_the_last_verdict(capsys, toys):
    rows = answer(capsys, "claims", "toy/uniform", "--json")
    assert [row["verdict"] for row in rows] == ["", ""]
    assert answer(capsys, "claims", "toy/uniform").endswith("\nnot run: 2\n")
    answer(capsys, "run", "toy/uniform", "--on", "local")
    rows = answer(capsys, "claims", "toy/uniform", "--json")
    assert [row["verdict"] for row in rows] == ["holds", "fails"]
    assert rows[0]["paper"] == "1/2"
    assert {row["status"] for row in rows} == {"current"} and rows[0]["reduced"] == [
        "seeds 6 of 12",
        "size 1000 of 100000",
    ]
    assert answer(capsys, "claims", "toy/uniform", "--stale", "--json") == []
    answer(capsys, "run", "toy/uniform", "--seeds", "4", "--on", "local")
    assert {row["status"] for row in answer(capsys, "claims", "toy/uniform", "--json")} == {"custom"}


def test_report_and_publish_write_what_was_found(capsys, toys, tmp_path):
    answer(capsys, "run", "toy/uniform", "--on", "local")
    assert "report/index.html" in answer(capsys, "report")
    assert (tmp_path / "report" / "toy" / "uniform" / "quick.html").is_file()
    answer(capsys, "publish", "toy/uniform", "--to", "kept")
    assert (tmp_path / "kept" / "toy" / "uniform" / "quick" / "findings.json").is_file()


def test_train_reports_the_loss_beside_the_best_possible(capsys, tmp_path):
    options = ["--set", "world.length=12", "--set", "model.layers=1", "--set", "model.width=8", "--set", "steps=20"]
    text = answer(capsys, "train", "--world", "in-context-markov", *options)
    assert "the best possible" in text and "this model" in text and "█" in text
    data = answer(capsys, "train", "--world", "in-context-markov", *options, "--json")
    assert len(data["loss"]) == 20 and Path(data["path"]).is_dir()


def test_coverage_prints_every_id_and_its_place(capsys, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "01.toml").write_text(
        'spec = "first"\n[ids]\n"dyck" = "sandlab.worlds.dyck.language:Dyck"\n'
    )
    assert "sandlab.worlds.dyck.language:Dyck" in answer(capsys, "coverage", "--folder", "tables")
    (row,) = answer(capsys, "coverage", "--folder", "tables", "--json")
    assert row == {"chapter": "first", "id": "dyck", "places": ["sandlab.worlds.dyck.language:Dyck"], "problems": []}
    (tmp_path / "tables" / "01.toml").write_text('[ids]\n"dyck" = "sandlab.worlds.dyck.language:Duck"\n')
    assert "Duck" in answer(capsys, "coverage", "--folder", "tables", code=2)


def test_bench_measures_ratios(capsys, tmp_path, monkeypatch):
    from sandlab.lab._bench import measure as benchmarks

    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "sums.py").write_text(
        "def measure():\n    return [{'name': 'sum', 'unit': 'x/s', 'ours': 30.0, 'baseline': 10.0, 'ratio': 3.0}]\n"
    )
    real = benchmarks.benchmark_files
    monkeypatch.setattr(benchmarks, "benchmark_files", lambda names=None: real(names, folder))
    assert "3×" in answer(capsys, "bench", "--out", "speed")
    assert list((tmp_path / "speed").glob("*.svg"))
    measured = answer(capsys, "bench", "sums", "--json")
    assert measured["rows"][0]["ratio"] == 3.0
    assert measured["machine"]["cores"] >= 1


def test_ctrl_c_ends_with_a_sentence_and_the_same_command_goes_on(toys, tmp_path):
    code = "import toys\nfrom sandlab.cli import main\nif __name__ == '__main__':\n    main()\n"
    script = tmp_path / "terminal.py"
    script.write_text(code)
    paths = os.pathsep.join([str(LAB_TESTS), str(Path(sl.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, toys.LOG: str(tmp_path / "log")}
    command = [sys.executable, str(script), "run", "toy/uniform", "--set", "pause=1"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while "start" not in (Path(tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: what was finished is kept" in err
    assert "Traceback" not in err


@dataclass(frozen=True)
class Inner:
    x: int = 1


@dataclass(frozen=True)
class Outer:
    whole: int = 1
    real: float = 1.0
    word: str = ""
    yes: bool = False
    maybe: int | None = None
    many: tuple[int, ...] = ()
    pair: tuple[float, str] = (0.0, "")
    listed: list[str] = dataclasses.field(default_factory=list)
    one_of: Literal["a", "b"] = "a"
    either: int | tuple[int, ...] = 1
    inner: Inner = Inner()


READINGS = [
    ("whole", "3", 3),
    ("real", "3", 3.0),
    ("real", "1e-3", 1e-3),
    ("word", "hello", "hello"),
    ("word", "3", "3"),
    ("yes", "true", True),
    ("maybe", "none", None),
    ("maybe", "4", 4),
    ("many", "1,2", (1, 2)),
    ("many", "[1, 2]", (1, 2)),
    ("many", "5", (5,)),
    ("pair", '[0.5, "x"]', (0.5, "x")),
    ("listed", "a,b", ["a", "b"]),
    ("one_of", "b", "b"),
    ("either", "2", 2),
    ("either", "2,3", (2, 3)),
]
REFUSALS = [
    ("whole", "x"),
    ("whole", "1.5"),
    ("whole", "true"),
    ("yes", "7"),
    ("one_of", "c"),
    ("many", "a"),
    ("real", "x"),
]


@pytest.mark.parametrize("pydantic", [True, False])
def test_settings_are_read_by_their_types_with_and_without_pydantic(monkeypatch, pydantic):
    if not pydantic:
        monkeypatch.setitem(sys.modules, "pydantic", None)
    for field, text, value in READINGS:
        read = read_settings(Outer, {field: text}, "outer")[field]
        assert read == value and type(read) is type(value), (field, text)
    for field, text in REFUSALS:
        with pytest.raises(BadInput, match=f"{field} must be"):
            read_settings(Outer, {field: text}, "outer")


def test_settings_of_a_part_are_reached_with_a_dot():
    assert read_settings(Outer(), {"inner.x": "5"}, "outer") == {"inner": Inner(5)}
    with pytest.raises(BadInput, match="no settings of its own"):
        read_settings(Outer(), {"whole.x": "5"}, "outer")
    assert under("world", pairs(["world.a=1", "b=2"])) == {"a": "1"}


def test_a_type_that_no_text_can_give_is_refused():
    with pytest.raises(BadInput, match="must be a Path"):
        read_value(type("Path", (), {}), "x", "field")
    with pytest.raises(ValueError, match="from text"):
        convert(object, 1)
    assert settings.convert(sl.worlds.__class__ | None, None) is None
