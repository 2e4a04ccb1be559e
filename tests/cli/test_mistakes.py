"""Sixty plausible mistakes: each is answered by one sentence, exit code 2, and what to do instead."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sandlab.cli import call

MODULE = """
from torch import nn
class MyGRU(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.table = nn.Embedding(vocab, vocab)
    def forward(self, x):
        return self.table(x)
"""
STUDY = "ngrams/stages"
MISTAKES = [
    # commands and options
    ("sho dyck", "did you mean 'show'"),
    ("lst worlds", "did you mean 'list'"),
    ("trian --world dyck", "did you mean 'train'"),
    ("show", "needs the argument 'name'"),
    ("train", "needs the option '--world'"),
    ("results --jsn", "--json"),
    ("sample dyck -n x", "must be a whole number"),
    ("serve --port abc", "must be a whole number"),
    ("claims --store", "requires an argument"),
    ("list worlds models", "no place for (models)"),
    # names
    ("list world", "did you mean 'worlds'"),
    ("sample", "see `sandlab list worlds`"),
    ("sample dykc", "did you mean 'dyck'"),
    ("show markov", "markov/*"),
    ("run markov", "did you mean 'markov/*'"),
    ("claims dyck", "did you mean 'dyck/*'"),
    ("run", "or --all"),
    ("run markov/weight-tyin", "did you mean 'markov/weight-tying'"),
    ("run ngram/stages", "did you mean 'ngrams/stages'"),
    ("train --world dyck --model transfromer", "did you mean 'transformer'"),
    ("train --world dyck --model gpt2", "did you mean 'transformer'"),
    ("train --world dyck --model mamba", "did you mean 'state-space'"),
    ("train --world mqar", "did you mean 'associative-recall'"),
    ("train --world dyck --set model.d_model=3", "did you mean 'width'"),
    ("train --world dyck --set epochs=3", "did you mean 'steps'"),
    ("train --world dyck --model mine.py:MyGRU --set model.widht=3", "cannot be made with vocab, widht"),
    ("card gru", "did you mean 'lstm'"),
    ("card transformer --against gpt", "did you mean 'transformer'"),
    ("bench startupp", "did you mean 'startup'"),
    ("claims --history ngrams/stages.plateau", "did you mean 'ngrams/stages.plateau"),
    # settings
    ("sample dyck --set length", "try --set length=40"),
    ("sample dyck --set lenght=3", "did you mean 'length'"),
    ("sample dyck --set length=three", "a whole number, got 'three'"),
    ("sample dyck --set length=2.5", "a whole number, got '2.5'"),
    ("sample dyck --set types=-1", "at least 1"),
    ("sample dyck -n 0", "at least 1"),
    ("sample dyck --seed -1", "at least 0"),
    ("train --world dyck --set positions=rotary", "--set model.positions=rotary"),
    ("train --world dyck --set model.positions=rope", "did you mean 'rotary'"),
    ("train --world dyck --set model.norm=layernorm", "did you mean 'pre'"),
    ("train --world dyck --set model.attention=flash", "did you mean 'softmax'"),
    ("train --world dyck --set model.widht=3", "did you mean 'width'"),
    ("train --world dyck --set model.heads=3", "or give head_width"),
    ("train --world dyck --set lr=fast", "lr must be a number"),
    ("train --world dyck --set lr=-1", "at least 0"),
    ("train --world dyck --set optimizer=adm", "did you mean 'adam'"),
    ("train --world dyck --set schedule=cos", "did you mean 'cosine'"),
    ("train --world dyck --seeds 0", "at least one"),
    (f"run {STUDY} --set steps=3", "training.steps'"),
    (f"run {STUDY} --seeds 0", "at least 1"),
    (f"run {STUDY} --full --null", "give one of them"),
    (f"run {STUDY} --budget soon", "90s, 8m or 1.5h"),
    # places
    ("train --world dyck --device gpu", "called cuda"),
    (f"run {STUDY} --device tpu", "one of 'cpu', 'cuda'"),
    (f"run {STUDY} --on rai", "did you mean 'ray'"),
    ("report --store nowhere", "no store at nowhere"),
    # files
    ("sample dyck --to data.csv", "end in .parquet"),
    ("export nowhere --to hf", "no model in nowhere"),
    ("export nowhere --to onnx", "did you mean 'torch'"),
    ("eval nowhere --world dyck", "no model in nowhere"),
    ("list worlds --plugin nowhere.py", "there is no file"),
    ("train --world dyck --model mine.py", "mine.py:MyModule"),
    ("train --world dyck --model mine.py:MyGru", "did you mean 'MyGRU'"),
    ("sweep mine.py", "defines no 'experiments'"),
    ("sweep mine.py:MyGRU", "a list of Experiments"),
    # machines
    ("compile '(ab'", "never closed"),
    ("compile S99", "between 3 and 7"),
    ("compile '(ab)*' --method skan", "did you mean 'scan'"),
    ("compile nowhere.json", "no file 'nowhere.json'"),
    # new files
    ("new word coin", "did you mean 'world'"),
    ("new world Coin", "such as my-coin"),
]


def test_there_are_sixty() -> None:
    assert len({line for line, _ in MISTAKES}) >= 60


@pytest.mark.parametrize(("line", "hint"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_answered_in_one_sentence(
    line: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("SANDLAB_PLUGINS", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sandlab.plugins._loaded", {})
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    assert call(shlex.split(line)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.startswith("sandlab: ") and hint in sentence
