"""The how-to pages run: their files are written, their commands called and their Python executed, in order."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.registry import KINDS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(kind, title or "", text) for kind, title, text in FENCE.findall(page.read_text(encoding="utf-8"))]


def run_page(page: Path) -> dict:
    """Everything that a reader would do, in the current folder; the names its Python leaves behind."""
    names: dict = {"__name__": page.stem}
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, page.name, "exec", dont_inherit=True), names)
        elif block.language == "sh":
            for line in block.text.splitlines():
                expected = re.search(r"# exit code (\d)", line)
                words = shlex.split(line, comments=True)
                assert words[0] == "sandlab", f"only SandLab's own commands are run here, got {line}"
                assert call(words[1:]) == (int(expected[1]) if expected else 0), line
    return names


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    """The small model of tests/decoding, trained on people written as JSON."""
    found = importlib.util.spec_from_file_location("small_models", ROOT / "tests" / "decoding" / "conftest.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.shared_json_model(tmp_path_factory)


def test_decoding_with_a_verifier(model_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").symlink_to(model_folder)
    names = run_page(ROOT / "docs" / "howto" / "decode-with-a-verifier.md")
    plain, guided = (sum(each.valid for each in names[which]) for which in ("plain", "guided"))
    assert guided > plain + 25
    assert names["quality"].area > 0.8
    assert sum("Kurt" in each.text for each in names["kept"]) < sum("Kurt" in each.text for each in names["free"])
    assert (tmp_path / "run.svg").read_text().count("<svg") == 1
    assert "complete and in the language (stop)" in capsys.readouterr().out
    assert names["value"].quality.area > 0.6 and any(each.valid for each in names["walked"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_has_a_language_and_every_link_a_target(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(blocks(page))
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert target == "../contributing.md" or _is_made(target) or (page.parent / target).exists(), target


def _is_made(target: str) -> bool:
    """Whether the site makes this page: that of a registered thing, `../studies/dyck/balance.md`."""
    kind, _, name = target.removeprefix("../").removesuffix(".md").partition("/")
    return kind in KINDS and name in sl.names(kind)


def run_outside(name: str, folder: Path, check: str) -> None:
    """A page in a process of its own, where its plug-ins stay: commands first, then its Python and a check."""
    parts = blocks(ROOT / "docs" / "howto" / f"{name}.md")
    for block in parts:
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
    commands = [shlex.split(line) for block in parts if block.language == "sh" for line in block.text.splitlines()]
    code = [block.text for block in parts if block.language == "python" and not block.title]
    assert commands and code and all(words[0] == "sandlab" for words in commands)
    given = [
        "from sandlab.cli import call as _call",
        *(f"assert _call({words[1:]!r}) == 0, {words!r}" for words in commands),
    ]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    program = [sys.executable, "-c", "\n".join([*given, *code, check])]
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"


def test_own_modules_learn_three_worlds(tmp_path):
    check = """
assert len(table) == 6 and all(loss >= best - 0.1 for loss, best in table.values())
assert any("gru" in name for name in cache)
"""
    run_outside("train-your-own-module", tmp_path, check)
    assert list((tmp_path / "runs").rglob("*.safetensors"))
    assert len((tmp_path / "my_sweep" / "table.csv").read_text().splitlines()) == 1 + 6
    assert (tmp_path / "my_sweep" / "losses.svg").is_file()


@pytest.mark.slow  # a shorter replay is in tests/cli/test_newcomer.py
def test_a_regular_expression_arrives_at_hugging_face(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("transformer_lens")
    check = """
torch.testing.assert_close(twin(tokens).logits, logits, rtol=0, atol=1e-5)
torch.testing.assert_close(twin_logits, trained(letters), rtol=0, atol=1e-4)
"""
    run_outside("from-a-regex-to-hugging-face", tmp_path, check)


@pytest.mark.slow  # a shorter replay is in tests/cli/test_newcomer.py
def test_a_world_and_a_study_from_outside_run_at_the_terminal(tmp_path):
    run_outside("bring-your-own-world-and-study", tmp_path, "assert study.claims")
    assert (tmp_path / "report" / "index.html").is_file()
