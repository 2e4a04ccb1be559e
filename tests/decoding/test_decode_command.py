"""`sandlab decode` as a user meets it: every algorithm, every kind of language, text and JSON, and every refusal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sandlab.cli import call
from sandlab.cli.decoding import _exit_code
from sandlab.decoding.text import decoder_names

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["age"],
}
SURE = {"adaptive-rejection", "sinclair-jerrum", "value-guided", "vgb"}
CODES = {"gave up": 3, "out of budget": 3, "cut off": 5}


def decode(capsys, *arguments: str, code: int = 0) -> str:
    assert call(["decode", *arguments]) == code, capsys.readouterr()
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.out + printed.err if code == 2 else printed.out


def refuse_constants(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("algorithm", decoder_names())
def test_every_algorithm_prints_text_and_strict_json(random_folder, capsys, algorithm):
    arguments = ["--model", str(random_folder), "-p", "x", "--regex", "[ -~]*", "--algorithm", algorithm]
    arguments += ["--max-new", "6", "--budget", "400"]
    arguments += ["--set", "block=2"] if algorithm == "block-best-of-n" else []
    finished = call(["decode", *arguments, "--json"])
    (result,) = json.loads(capsys.readouterr().out, parse_constant=refuse_constants)
    assert finished == (0 if result["valid"] else CODES.get(result["status"], 1))
    assert bool(re.fullmatch("[ -~]*", result["text"])) or not result["valid"]
    if algorithm in SURE:
        assert result["valid"] and finished == 0
    assert (result["logprob"] is None) == (algorithm == "exhaustive-search")
    shown = decode(capsys, *arguments, code=finished)
    for word in ("prompt", "text", "result", "log-prob", "queries", result["message"], repr(result["text"])):
        assert word in shown


@pytest.mark.slow  # of another command: tests/lab/test_ends.py
def test_json_is_on_stdout_in_a_process_of_its_own(random_folder):
    words = [sys.executable, "-m", "sandlab", "decode", "--model", str(random_folder), "-p", "x", "--regex", "a{3}"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True)
    (result,) = json.loads(done.stdout)
    assert done.returncode == 0 and result["text"] == "aaa"


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    ("option", "text", "fits"),
    [
        ("--grammar", 'start: "(" start ")" | "x"\n', lambda text: re.fullmatch(r"(\()*x(\))*", text)),
        ("--json-schema", json.dumps(SCHEMA), lambda text: 0 <= json.loads(text)["age"] <= 99),
    ],
)
def test_a_language_comes_from_a_file_or_is_written_out(random_folder, tmp_path, capsys, option, text, fits, as_file):
    source = tmp_path / "language"
    source.write_text(text)
    shown = decode(capsys, "--model", str(random_folder), "-p", "x", option, str(source) if as_file else text, "--json")
    (result,) = json.loads(shown)
    assert result["valid"] and fits(result["text"])


def test_several_prompts_are_summed_up(random_folder, tmp_path, capsys):
    (tmp_path / "prompts.txt").write_text("one\n\ntwo\n")
    arguments = ["--model", str(random_folder), "--regex", "[ab]{2}", "--prompts", str(tmp_path / "prompts.txt")]
    shown = decode(capsys, *arguments, "-p", "zero", "--max-new", "4")
    assert re.findall("prompt     '(.*)'", shown) == ["zero", "one", "two"]
    assert re.search(r"3 prompts: 3 complete; \d+ queries to the model", shown)
    hopeless = decode(capsys, *arguments, "--algorithm", "greedy", "--max-new", "4", code=5)
    assert "2 prompts: 2 cut off" in hopeless
    assert "the text was cut at 4 tokens: raise max_new (length)" in hopeless


def test_the_end_of_the_budget_is_told_by_words_and_exit_code(random_folder, capsys):
    arguments = ["--model", str(random_folder), "-p", "x", "--regex", "[ab]{2,4}", "--max-new", "8", "--budget", "1"]
    assert "budget of 1 queries ran out before a complete text was found: raise it" in decode(
        capsys, *arguments, code=3
    )
    (result,) = json.loads(decode(capsys, *arguments, "--json", code=3))
    assert result["status"] == "out of budget" and not result["valid"] and result["counters"]["oracle_calls"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--grammar", "nofile.lark"], "there is no grammar file 'nofile.lark'"),
        (["--grammar", 'start: "a" b'], 'the grammar does not parse: at 1(8): unknown name: "b"'),
        (["--grammar", "start: A\nA: /[/"], "unclosed character class"),
        (["--regex", "[a"], "the regular expression does not parse"),
        (["--json-schema", "nofile.json"], "there is no JSON schema file 'nofile.json'"),
        (["--json-schema", '{"type":'], "the JSON schema is not JSON"),
        (["--regex", "ab*", "--whole"], "the prompt 'x' is outside the language: no text of the language begins"),
        (["--regex", "a", "--model", "nowhere"], "there is no model folder 'nowhere'"),
        (["--regex", "a", "--budget", "0"], "budget must be a whole number of at least 1, got 0"),
        (["--regex", "a", "--prompts", "nofile.txt"], "there is no prompt file 'nofile.txt'"),
        (["--regex", "a", "--set", "quota"], "--set takes name=value, got 'quota'"),
        (["--regex", "a", "--set", "max_trys=2"], "value-guided has no option 'max_trys': did you mean 'max_tries'?"),
        (["--regex", "a", "--set", "max_tries=many"], "max_tries must be a whole number, got 'many'"),
        (["--regex", "a", "--algorithm", "backtrak"], "no algorithm called 'backtrak': did you mean 'backtrack'?"),
        (["--algorithm", "vgb"], "VGB asks a verifier: give a grammar, a regex or a JSON schema"),
        (["--stream", "-p", "y", "--regex", "a"], "--stream shows one text, got 2"),
        (["--chat", "--regex", "a"], "the tokenizer has no chat template"),
    ],
)
def test_bad_input_is_one_sentence_on_the_terminal(random_folder, capsys, arguments, words):
    text = decode(capsys, "--model", str(random_folder), "-p", "x", *arguments, code=2)
    assert text.startswith("sandlab: ") and words in text
    assert text.count("\n") == 1


def test_exit_codes_tell_how_it_ended(random_folder, capsys):
    arguments = ["--model", str(random_folder), "-p", "x", "--max-new", "6"]
    decode(capsys, *arguments, "--regex", "[ab]{2}")
    decode(capsys, *arguments, "--regex", "[ab]{20}", code=3)
    decode(capsys, *arguments, code=5)
    shown = decode(
        capsys, *arguments, "--algorithm", "temperature", "--stop", "e", "--max-new", "200", "--regex", "q", code=1
    )
    assert "(stop)" in shown


def test_samples_choices_and_streaming_on_the_terminal(random_folder, capsys):
    arguments = ["--model", str(random_folder), "-p", "x", "--choice", "yes", "--choice", "no"]
    three = json.loads(decode(capsys, *arguments, "-n", "3", "--json"))
    assert [each["sample"] for each in three] == [0, 1, 2] and {each["text"] for each in three} <= {"yes", "no"}
    assert call(["decode", *arguments, "--stream", "--top-k", "5", "--min-p", "0.01"]) == 0
    printed = capsys.readouterr()
    assert printed.err.rstrip().endswith(re.search("text       '(.*)'", printed.out)[1])


def test_of_several_ends_the_worst_gives_the_exit_code_and_the_help_lists_them(capsys):
    ends = {"gave up": ("gave up", "gave up", False), "outside": ("stop", "complete", False)}
    ends |= {"cut": ("length", "cut off", None), "well": ("stop", "complete", True)}

    def code(*names: str) -> int:
        made = [ends[name] for name in names]
        return _exit_code([SimpleNamespace(finish=end, status=status, valid=valid) for end, status, valid in made])

    assert [code(name) for name in ("well", "outside", "gave up", "cut")] == [0, 1, 3, 5]
    assert code("well", "cut", "outside") == 1 and code("cut", "outside", "gave up") == 3
    shown = decode(capsys, "--help")
    for word in ("1, some text ended outside", "3, some sample was given up", "5, some text was cut"):
        assert word in " ".join(shown.split())
