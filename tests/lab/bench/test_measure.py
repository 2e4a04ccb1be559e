"""The benchmarks' runner: fresh processes, time limits, what goes wrong; and the adapters to public repositories."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sandlab.errors import BadInput
from sandlab.lab._bench.figures import write_measurements
from sandlab.lab._bench.measure import benchmark_files, load_benchmark, measure_against, measure_all
from sandlab.lab._exec.sources import PACKAGE

FOLDER = PACKAGE.parent / "benchmarks"
ROW = "{'name': 'sum', 'unit': 'x/s', 'ours': 30.0, 'baseline': 10.0, 'ratio': 3.0}"


def written(folder: Path, **files: str) -> list[Path]:
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code)
    return benchmark_files(folder=folder)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_every_benchmark_of_the_repository_can_be_loaded(file):
    load_benchmark(file)


def test_populations_are_compared_with_the_plain_loop():
    training = load_benchmark(FOLDER / "training.py")
    row = training.compare("two", training.small_transformer, 2, 2, patience=0.0)
    assert row["ratio"] > 0 and row["members"] == 2 and row["computed"] == "native"


def test_each_benchmark_runs_in_a_process_of_its_own_and_its_prints_are_no_rows(tmp_path):
    code = f"import os\ndef measure():\n    print('noise')\n    yield {{**{ROW}, 'process': os.getpid()}}\n"
    rows = measure_all(written(tmp_path, first=code, second=code))["rows"]
    assert [row["benchmark"] for row in rows] == ["first", "second"]
    assert rows[0]["process"] != rows[1]["process"]


def test_quick_gives_a_benchmark_its_own_shorter_settings_and_rows_name_their_baseline(tmp_path):
    code = f"QUICK = {{'size': 1}}\nBASELINE = 'a loop'\ndef measure(size=5):\n    yield {{**{ROW}, 'size': size}}\n"
    files = written(tmp_path, sums=code)
    (whole,), (quick,) = measure_all(files)["rows"], measure_all(files, quick=True)["rows"]
    assert (whole["size"], quick["size"], quick["against"]) == (5, 1, "a loop")


def test_a_benchmark_that_takes_too_long_is_stopped_and_keeps_its_finished_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("sandlab.lab._bench.measure._KEPT_FOR_EACH", 4.0)
    slow = f"import time\ndef measure():\n    yield {ROW}\n    time.sleep(600)\n    yield {ROW}\n"
    files = written(tmp_path, slow=slow, then=f"def measure():\n    yield {ROW}\n")
    start = time.monotonic()
    measured = measure_all(files, minutes=0.001)
    assert time.monotonic() - start < 120
    assert "slow: stopped after 4 s" in measured["notes"][0]
    assert measured["rows"][-1]["benchmark"] == "then" or "then: stopped" in measured["notes"][-1]


def test_a_benchmark_that_breaks_is_named_and_the_next_ones_run(tmp_path):
    files = written(tmp_path, bad="def measure():\n    raise ValueError\n", good=f"def measure():\n    yield {ROW}\n")
    measured = measure_all(files)
    assert measured["notes"] == ["bad: ended with code 1 after 0 rows"]
    assert [row["benchmark"] for row in measured["rows"]] == ["good"]


def test_files_hold_the_machine_every_ratio_and_both_figures(tmp_path):
    files = written(tmp_path, sums=f"def measure():\n    yield {ROW}\n")
    names = {path.name for path in write_measurements(measure_all(files), tmp_path / "out")}
    assert names == {
        "bench.json",
        "bench-cases.md",
        *(f"{name}.{kind}" for name in ("bench", "bench-cases") for kind in ("svg", "png")),
    }
    assert "3×" in (tmp_path / "out" / "bench.svg").read_text()


def test_every_world_with_an_oracle_is_measured_for_sampling_and_for_its_oracle():
    import sandlab as sl

    oracles, sampling = load_benchmark(FOLDER / "oracles.py"), load_benchmark(FOLDER / "sampling.py")
    names = set(oracles.worlds())
    exact = {name for name in sl.names("worlds") if sl.get("worlds", name).oracle is not sl.worlds.World.oracle}
    assert names == exact
    assert {type(sl.get("worlds", name)()) for name in names} >= sampling.measured_elsewhere()


def test_the_plain_oracles_say_what_the_worlds_say():
    import sandlab as sl

    oracles = load_benchmark(FOLDER / "oracles.py")
    for name, world in oracles.worlds().items():
        plain = oracles.plain_version(name, world)
        assert plain is None or oracles.agree(world, plain, world.sample(3, rng=sl.rng(5))), name


@pytest.mark.slow
@pytest.mark.parametrize("lens", ["tail_error", "agreement"])
def test_streamed_evaluation_of_a_billion_tokens_stays_below_two_gigabytes(lens):
    memory = load_benchmark(FOLDER / "memory.py")
    few, many = 1_000_000, 30_000_000
    low, high = memory.peaks(lens, few, many)
    assert high < 2e9
    assert high - low < 0.1 * low
    assert memory.at_a_billion(few, many, low, high) < memory.LIMIT


# ---------------------------------------------------------------------------------------------- public repositories

TREES = {
    "Zoology": ["zoology/data/multiquery_ar.py"],
    "MAD-lab": ["mad/data/instances.py"],
    "Chomsky hierarchy": ["tasks/task.py", "tasks/regular/parity_check.py"],
    "sub-n-grams-are-stationary": ["problems.py", "models.py", "train.py"],
    "LM_Query_Complexity": ["src/dyck.py", "src/lm.py"],
}


def tree(folder: Path, files: list[str], code: str = "") -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(code)
    return folder


@pytest.mark.parametrize("name", TREES)
def test_a_repository_is_told_by_its_files_whatever_its_folder_is_called(tmp_path, name):
    against = load_benchmark(FOLDER / "against.py")
    assert against.recognise(tree(tmp_path / "somewhere", TREES[name])).name == name


def test_an_unknown_folder_is_refused_with_the_list_of_known_ones(tmp_path):
    with pytest.raises(BadInput, match=r"none of the repositories with an adapter .*Zoology"):
        measure_against(tmp_path)
    with pytest.raises(BadInput, match="is no folder"):
        measure_against(tmp_path / "nowhere")


def test_a_checkout_with_another_interface_is_refused_with_one_sentence(tmp_path):
    root = tree(tmp_path, TREES["LM_Query_Complexity"], "class Other:\n    pass\n")
    with pytest.raises(BadInput, match=r"looks like LM_Query_Complexity, but .* interface is not the one"):
        measure_against(root)


def test_a_checkout_whose_libraries_are_missing_says_which(tmp_path):
    root = tree(tmp_path, TREES["Zoology"], "import a_library_that_nobody_has\n")
    with pytest.raises(BadInput, match="a_library_that_nobody_has"):
        measure_against(root)


def test_a_generator_of_another_repository_is_timed_beside_ours(tmp_path):
    code = """
        class RandomWalkDyck:
            def __init__(self, config):
                self.length = config["length"]

            def generate(self):
                return {"tokens": [0, 2] * (self.length // 2)}
    """
    import textwrap

    (row,) = measure_against(tree(tmp_path, TREES["LM_Query_Complexity"], textwrap.dedent(code)))["rows"]
    assert row["unit"] == "brackets/s"
    assert row["ratio"] == pytest.approx(row["ours"] / row["baseline"])
