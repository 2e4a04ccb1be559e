"""An exit code for each kind of end, and no traceback for what the machine does (D6, D7, D12, D13, D15, D16, D21)."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toys

import sandlab as sl
from sandlab.cli import call
from sandlab.errors import BadInput
from sandlab.lab._exec.executors import executor
from sandlab.lab._store.store import Store

HERE = Path(__file__).parent
MACHINE = 3


@pytest.fixture
def terminal(capsys, tmp_path):
    """A command's exit code and what it said on stderr."""

    def give(*words: str) -> tuple[int, str]:
        code = call([*words])
        return code, capsys.readouterr().err

    return give


def run_words(store: Path, *more: str) -> list[str]:
    return ["run", "toy/uniform", "--on", "local", "--store", str(store), *more]


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_what_the_disk_refuses_is_a_sentence_and_exit_code_three(terminal, tmp_path, monkeypatch, number):
    """D7."""

    def refuse(*_args, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    code, told = terminal(*run_words(tmp_path / "runs"))
    assert code == MACHINE and "Traceback" not in told and os.strerror(number) in told


def test_a_store_below_a_file_and_an_output_that_is_a_file_are_refused(terminal, tmp_path):
    """D7."""
    (tmp_path / "file").write_text("")
    sl.run(toys.study, store=tmp_path / "runs", progress=False)
    for words in (
        run_words(tmp_path / "file"),
        run_words(tmp_path / "file" / "below"),
        run_words(Path("/proc/none")),
        ["report", "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "file")],
        ["publish", "toy/uniform", "--store", str(tmp_path / "runs"), "--to", str(tmp_path / "file")],
        ["compile", "(ab)*", "--length", "4", "--no-compare", "--save", str(tmp_path / "file")],
        ["compile", "(ab)*", "--length", "4", "--no-compare", "--pictures", str(tmp_path / "file")],
        ["sample", "dyck", "--to", str(tmp_path / "file" / "x.parquet")],
    ):
        code, told = terminal(*words)
        assert code in (2, 3) and "Traceback" not in told, (words, told)


WORKS = [
    ("sandlab.lab._bench.measure.measure_all", ["bench", "--out"]),
    ("sandlab.lab._card.measure.measure_card", ["card", "transformer", "--on", "local", "--out"]),
    ("sandlab.circuits.automata.compiler.verify", ["compile", "(ab)*", "--no-compare", "--save"]),
    ("sandlab.circuits.automata.compiler.verify", ["compile", "(ab)*", "--no-compare", "--pictures"]),
    ("sandlab.cli.studies._run_all", ["tour", "--out"]),
    ("sandlab.lab.sweeps.sweep", ["sweep", "mine.py", "--out"]),
]


@pytest.mark.parametrize(("work", "words"), WORKS, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_what_will_be_written_is_opened_before_the_work(terminal, tmp_path, monkeypatch, work, words):
    """D9: a folder that cannot be written is refused at once, not after minutes of work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import sandlab as sl\nfrom sandlab.learning.experiment import Experiment, Training\n"
        "world, model = sl.worlds.Cyclic(length=4), sl.models.LSTMConfig(vocab=2, width=4)\n"
        "experiments = [Experiment(world, model, Training(steps=1), seeds=1)]\n"
    )
    (tmp_path / "file").write_text("")
    begun: list[object] = []

    def begin(*args: object, **_options: object) -> None:
        begun.append(args)
        raise BadInput("the work has begun")

    monkeypatch.setattr(work, begin)
    for target, code in (("file", 2), ("/proc/none", MACHINE)):
        ended, told = terminal(*words, target)
        assert ended == code and not begun and "Traceback" not in told, told
    assert terminal(*words, "folder")[0] == 2 and len(begun) == 1  # and the work is what was put in its place


def test_a_training_that_diverges_is_a_sentence(terminal, tmp_path):
    """D7."""
    small = ["--set", "world.length=8", "--set", "model.width=8", "--set", "steps=40", "--set", "lr=1e30"]
    code, told = terminal("train", "--world", "markov-chain", "--store", str(tmp_path), *small)
    assert code == 2 and "lower it" in told and "Traceback" not in told


def test_a_locked_index_does_not_end_a_run(terminal, tmp_path, monkeypatch):
    """D7: the index is disposable."""
    import sqlite3

    from sandlab.lab._store.index import Index

    monkeypatch.setattr(Index, "patience", 1.0)
    sl.run(toys.study, store=tmp_path / "runs", progress=False)
    held = sqlite3.connect(tmp_path / "runs" / "index.sqlite", isolation_level=None)
    held.execute("begin exclusive")
    try:
        with pytest.warns(UserWarning, match="cannot be written"):
            report = sl.run(toys.study, store=tmp_path / "runs", seeds=7, progress=False)
    finally:
        held.close()
    assert report.findings and len(Store.open(tmp_path / "runs").index.rows("select * from runs")) == 2


def test_a_folder_with_code_of_its_own_runs_nothing(tmp_path):
    """D6: whatever is answered on stdin."""
    pytest.importorskip("transformers")
    mark = tmp_path / "ran"
    folder = tmp_path / "evil"
    folder.mkdir()
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")
    words = [sys.executable, "-m", "sandlab", "decode", "--model", str(folder), "-p", "x", "--regex", "a"]
    done = subprocess.run(words, input="y\ny\ny\n", capture_output=True, text=True, timeout=200)
    assert not mark.exists()
    assert done.returncode in (2, 3) and "Traceback" not in done.stderr


def race(store: Path, log: Path, count: int) -> list[subprocess.Popen]:
    code = "import sys, toys, sandlab as sl; print(sl.run(toys.study, store=sys.argv[1], progress=False).path)"
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1]}", toys.LOG: str(log)}
    words = [sys.executable, "-c", code, str(store)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(words, env=environment, **pipes) for _ in range(count)]


@pytest.mark.parametrize(
    ("rounds", "count"), [(1, 4), pytest.param(12, 8, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_runs_that_race_leave_one_folder_and_compute_each_job_once(tmp_path, rounds, count):
    """D12, D13."""
    for number in range(rounds):
        store, log = tmp_path / f"runs-{number}", tmp_path / f"{number}.log"
        answers = [process.communicate(timeout=400) for process in race(store, log, count)]
        assert all(out.strip() and "Traceback" not in err for out, err in answers), answers
        assert len({out for out, _ in answers}) == 1
        assert len(Store(store).records()) == 1
        starts = [line for line in log.read_text().splitlines() if line.startswith("start")]
        assert sorted(starts) == [f"start {seed}" for seed in range(6)]


def test_a_leftover_that_another_process_removes_first_is_no_error(tmp_path, monkeypatch):
    """D13."""
    store = Store.open(tmp_path)
    left = tmp_path / "locks" / "x.lock"
    left.parent.mkdir(exist_ok=True)
    left.write_text("")
    os.utime(left, (0, 0))
    real = Path.stat

    def gone(path: Path, **options):
        if path == left:
            left.unlink(missing_ok=True)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", gone)
    assert store.tidy() == []


def test_a_worker_inside_a_long_c_call_ends_with_its_driver(drive):
    """D15: the call holds the interpreter's lock, so that no thread of the worker can look after its parent."""
    process = drive.start("processes:2", seeds=4, trouble="hold")
    drive.wait_for(lambda: len(drive.lines("start")) >= 2, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError("a worker outlived its driver")


def test_json_stays_json_whatever_is_printed(tmp_path):
    """D16: by a job, by a library in C, by a process that was started."""
    code = (
        "import os, sys, toys\nfrom sandlab.cli import main\n"
        "words = ['run', 'toy/uniform', '--set', 'trouble=print', '--on', sys.argv[2], '--store', sys.argv[1]]\n"
        "main([*words, '--json'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1]}"}
    for on in ("local", "processes:2"):
        words = [sys.executable, "-c", code, str(tmp_path / on.replace(":", "")), on]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200)
        (report,) = json.loads(done.stdout)
        assert report["study"] == "toy/uniform" and "a job says hello" in done.stderr


@pytest.mark.parametrize("on", ["processes:99999", "processes:0", "processes:²", "processes:-1", "processes:x"])
def test_numbers_of_processes_are_checked(on):
    """D21."""
    with pytest.raises(BadInput, match="on must be like 'processes:4'"):
        executor(on)


def test_a_reader_that_goes_away_is_no_error():
    """D7: `sandlab list | head -1`."""
    words = f"{sys.executable} -m sandlab list worlds | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "markov"], "did you mean 'markov/*'?"),
        (["run", "markov/hessian", "--device", "gpu"], "a GPU is called cuda"),
        (["train", "--world", "markov-chain", "--set", "positions=none"], "--set model.positions=none"),
        (["train", "--world", "markov-chain", "--set", "start=uniform"], "--set world.start=uniform"),
        (["claims", "markov/hessian", "--store", "no such store"], "there is no store at no such store"),
        (["doctor", "--store", "no such store"], "there is no store"),
        (["report", "--store", "no such store"], "there is no store"),
    ],
)
def test_hints_lead_to_what_was_meant(terminal, words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, said = terminal(*words)
    assert code == 2 and told in said, said


def test_a_setting_that_is_a_function_is_refused_in_a_sentence(terminal):
    code, told = terminal("sample", "discrete-family", "--set", "statistic=null")
    assert code == 2 and "a function" in told


def test_control_characters_do_not_reach_the_terminal(terminal, capsys):
    from sandlab.cli.screen import print_table

    code, said = terminal("show", "\x1b[31mred\x07")
    assert code == 2 and "\x1b" not in said and "\x07" not in said
    print_table(["claim"], [["\x1b]0;title\x07x"]], "\x1b[2J")
    assert "\x1b" not in capsys.readouterr().out


def test_paths_that_are_no_text_are_told_and_do_nothing_to_the_terminal(tmp_path, capfdbinary):
    """A colour in the name of a folder, and bytes that are no UTF-8, as the system hands them to Python."""
    for name in ("\x1b[31m", "\udcff", "\x9b31m"):
        words = ["compile", "(ab)*", "--length", "2", "--no-compare", "--save", str(tmp_path / name)]
        assert call(words) == 0
        assert b"saved in" in (told := capfdbinary.readouterr().out) and not {0x1B, 0xFF} & set(told)
        assert call([*words, "--json"]) == 0
        document = capfdbinary.readouterr().out.decode()
        assert "\x1b" not in document and "\x9b" not in document
        assert Path(json.loads(document)["saved"]) == tmp_path / name


def test_runs_of_all_presets_are_ordered_by_number_not_by_the_clock(tmp_path, monkeypatch):
    """D10."""
    first = sl.run(toys.study, store=tmp_path, progress=False)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86400)
    second = sl.run(toys.study, store=tmp_path, seeds=7, progress=False)
    found = Store(tmp_path).records("toy/uniform")
    assert [record.path for record in found] == [first.path, second.path]
    assert found[0].order < found[1].order and found[0].finished > found[1].finished


def test_a_parquet_file_that_is_damaged_or_foreign_is_refused(tmp_path):
    path = sl.worlds.to_parquet(sl.worlds.Dyck(), tmp_path / "x.parquet", 3, rng=sl.rng(0))
    data = path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["x.parquet"]
    for bad in (b"", b"PAR1", data[: len(data) // 2], b"\0" * len(data)):
        path.write_bytes(bad)
        with pytest.raises(BadInput, match=r"damaged|not written by"):
            sl.worlds.read_parquet(path)
