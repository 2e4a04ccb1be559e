"""Commands that once ended in a traceback, in minutes of work or in gigabytes: now one sentence within seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sandlab.cli import call

OFFENDERS = [
    ["compile", "a{²}"],
    ["compile", "(" * 2000 + "a" + ")" * 2000],
    ["compile", "[" * 5000],
    ["compile", "((a{200}){200}){200}"],
    ["compile", "C99999999999"],
    ["compile", "[a-\uffff]*"],
    ["compile", "S50"],
    ["compile", "(ab)*", "--length", "4", "--no-compare", "--save", "/dev/null"],
    ["sample", "copy-string", "--set", "size=1000000000"],
    ["sample", "dyck", "-n", "1000000000"],
    ["sample", "in-context-ngrams", "--set", "order=2147483648"],
    ["sample", "in-context-markov", "--set", "order=10000000"],
    ["sample", "cyclic", "--seed", "99999999999999999999"],
    ["run", "markov/hessian", "--on", "processes:²"],
    ["coverage", "--folder", "tables"],
    ["coverage", "--folder", "lists"],
    ["decode", "--model", "hf", "--prompts", "tables/00.toml"],
    ["decode", "--model", "hf", "-p", "x", "--json-schema", "tables/00.toml"],
    ["decode", "--model", "hf", "-p", "x", "--json-schema", '{"enum": ["' + "a" * 3000],
    ["decode", "--model", "hf", "-p", "x", "--grammar", "a" * 3000],
    ["decode", "--model", "hf", "-p", "x", "--set", "block=" + "[" * 100_000],
    ["decode", "--model", "hf", "-p", "x", "--set", "block=" + "9" * 5000],
    ["train", "--world", "grid", "--model", "mlp", "--store", "a" * 5000],
    ["train", "--world", "addition", "--model", "density-ratio"],
    ["claims", "markov/hessian", "--store", "file"],
    ["claims", "markov/hessian", "--store", "a" * 3000],
    ["report", "--store", "a/" * 3000],
    ["doctor", "--store", "a" * 300],
]


@pytest.mark.parametrize("words", OFFENDERS, ids=lambda words: " ".join(words)[:50].encode("ascii", "replace").decode())
def test_an_offender_is_refused_in_a_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "runs"))
    (tmp_path / "file").write_text("")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "00.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "00.toml").write_text("ids = [1, 2]")
    (tmp_path / "hf").mkdir()
    begun = time.process_time()
    assert call(words) == 2
    said = capsys.readouterr()
    assert time.process_time() - begun < 20
    assert said.err.startswith("sandlab: ") and "Traceback" not in said.err and len(said.err.splitlines()) == 1
