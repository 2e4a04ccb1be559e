"""A hundred and fifty plausible mistakes: each is answered by one sentence, exit code 2, and what to do instead."""

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
class Deep(MyGRU):
    def __init__(self, vocab, depth):
        super().__init__(vocab)
class Small(MyGRU):
    def __init__(self):
        super().__init__(3)
class Pools(MyGRU):
    def forward(self, x):
        return self.table(x).mean(1)
class Crashes(MyGRU):
    def forward(self, x):
        return self.table(x) @ self.table.weight.new_zeros(2, 2)
class Fixed(MyGRU):
    def __init__(self, vocab):
        super().__init__(vocab)
        self.table.requires_grad_(False)
class Hints:
    def __init__(self, vocab):
        pass
experiments = [3]
none_yet = []
model = MyGRU(3)
def make(vocab):
    return MyGRU(vocab)
"""
FILES = {"notes.txt": "hello", "broken.py": "def f(:", "lost.py": "import no_such_package", "broken.json": '{"a": 1'}
FILES |= {"quits.py": "import sys\nsys.exit(0)"}
FILES |= {"odd.json": "[[0, 1], [1, 2]]", "runs/training/1/model-0/config.json": "{}"}
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
    ("export induction-head --set states=3 --set length=9 --letters ab", "has 2 letters, the model reads 3"),
    ("export induction-head --set states=3 --set length=9 --world dyck", "--set world.NAME=VALUE"),
    ("export nowhere --to onnx", "did you mean 'torch'"),
    ("eval nowhere --world dyck", "no model in nowhere"),
    ("list worlds --plugin nowhere.py", "there is no file"),
    ("train --world dyck --model mine.py", "mine.py:MyModule"),
    ("train --world dyck --model mine.py:MyGru", "did you mean 'MyGRU'"),
    ("sweep mine.py:runs", "defines no 'runs'"),
    ("sweep mine.py:MyGRU", "a list of Experiments"),
    # machines
    ("compile '(ab'", "never closed"),
    ("compile S99", "between 3 and 7"),
    ("compile '(ab)*' --method skan", "did you mean 'scan'"),
    ("compile nowhere.json", "no file 'nowhere.json'"),
    # new files
    ("new word coin", "did you mean 'world'"),
    ("new world Coin", "such as my-coin"),
    # options of other commands and other programs
    ("list --sort", "--json"),
    ("train --world dyck --steps 3", "--set NAME=VALUE"),
    ("sample dyck --length 40", "--set NAME=VALUE"),
    (f"run {STUDY} --steps 3", "--set NAME=VALUE"),
    (f"run {STUDY} --quick", "what runs without --full"),
    (f"run {STUDY} --preset full", "--full is the larger one"),
    (f"run {STUDY} --seeds many", "must be a whole number"),
    ("train dyck transformer", "needs the option '--world'"),
    ("help", "no such command 'help'"),
    ("coverage 99", "no place for (99)"),
    ("decode", "needs the option '--model'"),
    ("serve --port 99999", "65535"),
    ("serve --host nowhere", "--token"),
    # names
    ("show transformr", "did you mean 'transformer'"),
    ("show Dyck", "did you mean 'dyck'"),
    ("sample transformer", "see `sandlab list worlds`"),
    ("train --world transformer", "see `sandlab list worlds`"),
    (f"run {STUDY}.end", f"did you mean '{STUDY}'"),
    ("run 'nothing/*'", "see `sandlab list studies`"),
    ("bench nothing", "there are atlas"),
    ("publish nothing", "no studies called 'nothing'"),
    ("card runs", "no models called 'runs'"),
    ("export scan-circuit --set machine=Q99 --set length=8", "no automaton called 'Q99'"),
    # settings
    ("sample dyck --set world.length=4", "did you mean 'length'"),
    ("sample dyck --set types==3", "a whole number, got '=3'"),
    ("sample in-context-markov --set states=1e9", "a whole number, got '1e9'"),
    ("sample flip-flop --set length=33", "must be even"),
    ("train --world dyck --set model=lstm", "--model lstm"),
    ("train --world dyck --set seeds=3", "--seeds 3"),
    ("train --world dyck --set training.steps=3", "did you mean 'steps'"),
    ("train --world dyck --set optimiser=adam", "did you mean 'optimizer'"),
    ("train --world dyck --set precision=fp16", "did you mean 'bf16'"),
    ("train --world dyck --set batch_size=0", "at least 1"),
    (f"run {STUDY} --budget -3m", "90s, 8m or 1.5h"),
    ("card transformer --budget ten", "90s, 8m or 1.5h"),
    ("card transformer --tasks facs", "did you mean 'facts'"),
    # modules of one's own
    ("train --world dyck --model mine.py:Deep", "missing 1 required positional argument: 'depth'"),
    ("train --world dyck --model mine.py:Small", "its tokens go up to 4"),
    ("train --world dyck --model mine.py:Pools", "must be logits (2, 28, 4)"),
    ("train --world dyck --model mine.py:Crashes", "cannot be multiplied"),
    ("train --world dyck --model mine.py:Fixed", "no parameters to train"),
    ("train --world dyck --model mine.py:Hints", "a class of torch.nn.Module"),
    ("card mine.py:Crashes --tasks facts", "cannot be multiplied"),
    ("card mine.py:Small --tasks facts", "mine.py:Small does not fit FactRecall"),
    ("train --world dyck --model notes.txt:MyGRU", "got the file notes.txt"),
    ("train --world dyck --model broken.py:MyGRU", "SyntaxError"),
    ("list worlds --plugin lost.py", "No module named 'no_such_package'"),
    ("list worlds --plugin runs", "got the folder runs"),
    ("sweep mine.py:none_yet", "at least one Experiment"),
    ("sweep mine.py:experiment", "did you mean 'experiments'"),
    ("sweep mine.py", "a list of Experiments, got 3"),
    # files and folders
    ("eval transformer --world dyck", "--model transformer makes a model"),
    ("export transformer", "--model transformer makes a model"),
    ("sample dyck --model lstm", "--model lstm makes a model"),
    ("eval runs/training/1 --world dyck", "runs/training/1/model-0"),
    (f"run {STUDY} --store notes.txt", "got the file notes.txt"),
    ("compile broken.json", "not a JSON automaton"),
    ("compile odd.json", "a state between 0 and 1, got 2"),
    ("compile 'ab)*'", "unmatched ')'"),
    ("compile '(ab)*' --save notes.txt", "got the file notes.txt"),
    ("new world dyck", "a world 'dyck' already"),
    ("new model queue", "the name of another module"),
    # names of other things
    ("show markov/", "is a chapter: see `sandlab list markov`"),
    ("show 'dyck/*'", "is a chapter: see `sandlab list dyck`"),
    ("show studies", "`sandlab list studies`"),
    ("train --world dyck --model mine.MyGRU", "is named mine.py:MyGRU"),
    ("card mine.MyGRU", "is named mine.py:MyGRU"),
    ("train --world dyck --model mine.py:model", "is a MyGRU, not a class"),
    ("card mine.py:make", "is a function, not a class"),
    ("export mine.py:MyGRU", "sandlab train --world NAME --model mine.py:MyGRU"),
    ("export mine.py", "--model mine.py:MyModule"),
    ("eval mine.py:MyGRU --world dyck", "sandlab train --world NAME"),
    ("sample dyck --model mine.py:MyGRU", "sandlab train --world NAME"),
    ("export induction-head --set states=3 --set length=9 --to pt2", "did you mean 'torch'"),
    ("export inductionhead", "did you mean 'induction-head'"),
    ("decode --model nowhere", "there is no prompt"),
    # settings
    ("train --world dyck --set length=12", "--set world.length=12"),
    ("train --world dyck --set learning_rate=0.1", "did you mean 'lr'"),
    ("train --world dyck --set batch=4", "did you mean 'batch_size'"),
    ("train --world dyck --set seed=3", "--seeds 3 trains three models"),
    ("train --world dyck --set model.n_heads=2", "did you mean 'heads'"),
    ("train --world dyck --set lr=1e-3,1e-4", "lr must be a number"),
    ("train --world dyck --set", "`sandlab train --help`"),
    ("sample dyck --n 3", "did you mean '-n'"),
    (f"run {STUDY} --on gpu", "the device is --device cuda"),
    (f"run {STUDY} --on 2", "did you mean 'processes:2'"),
    (f"run {STUDY} --on processes:two", "with 1 to 64 processes"),
    # files that do something else
    ("list worlds --plugin quits.py", "ends Python when it is loaded"),
    ("sweep mine.py:model", "a list of Experiments"),
    ("train --world dyck --model quits.py:Model", "ends Python when it is loaded"),
    ("compile '[a-z'", "never closed"),
    ("new world my_coin", "such as my-coin"),
]


def test_there_are_a_hundred_and_fifty() -> None:
    assert len({line for line, _ in MISTAKES}) >= 150


@pytest.mark.parametrize(("line", "hint"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_answered_in_one_sentence(
    line: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"mine.py": MODULE, **FILES}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
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
    assert not (tmp_path / "mine").exists()
