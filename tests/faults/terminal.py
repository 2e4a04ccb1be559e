"""Junk at the terminal: commands with words that no one should give; see junk.py."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import random
import tempfile
import traceback
from collections.abc import Callable

DOCUMENTED = {0, 1, 2, 3, 5, 130}
WORDS = [
    "", "x", "0", "-1", "1", "7", "99999999999999999999", "10000000", "1e300", "nan", "inf", "true", "no", "null", "[]",
    "{}", "[[", "é☃", "a" * 3000, "../../etc/passwd", "/dev/null", "/proc/none", "/etc/passwd", "--", "-n", "*", "a=b",
    "%s%n", "\x1b[31m", "(", "((a{200}){200}){200}", "[a-\uffff]*", "C99999999999", "S50", "(ab)*", "[" * 3000,
    "2147483648",
]  # fmt: skip


def commands(count: int, seed: int, folder: str) -> list[list[str]]:
    """Command lines: names mostly right, values mostly wrong, sizes from none to far too many."""
    import sandlab as sl
    from sandlab.cli.settings import _hints

    rng = random.Random(seed)
    worlds, models, studies = (
        sl.names("worlds"),
        sl.names("models"),
        ["markov/hessian", "dyck/balance", "x/y", "*/none"],
    )
    methods = ["auto", "scan", "rnn", "krohn-rhodes", "x"]

    def value() -> str:
        return rng.choice(WORDS)

    def settings(name: str) -> list[str]:
        fields = list(_hints(sl.get("worlds", name))) or ["x"]
        return [word for _ in range(rng.choice((1, 1, 2))) for word in ("--set", f"{rng.choice(fields)}={value()}")]

    def one() -> list[str]:
        world = rng.choice([*worlds, value()])
        known = world if world in worlds else worlds[0]
        tiny = ["--set", "steps=1", "--set", "batch_size=2", "--set", "eval_examples=2"]
        return rng.choice(
            [
                ["sample", world, *settings(known)],
                ["sample", world, *settings(known)],
                ["sample", world, "-n", value()],
                ["sample", world, "--seed", value()],
                ["sample", world, "--to", rng.choice(["/dev/null", f"{folder}/x.parquet", value()])],
                ["show", rng.choice([*worlds, *models, value()])],
                ["list", value()],
                ["compile", value(), "--length", rng.choice(["4", "0", value()]), "--no-compare"],
                [
                    "compile",
                    rng.choice(["(ab)*", "S3", "C2", value()]),
                    "--method",
                    rng.choice(methods),
                    "--length",
                    "4",
                ],
                ["compile", "(ab)*", "--length", "4", "--no-compare", "--save", value()],
                ["train", "--world", world, "--model", rng.choice([*models, value()]), *tiny, "--store", folder],
                ["train", "--world", "markov-chain", "--set", f"{value()}={value()}", *tiny, "--store", folder],
                ["train", "--world", "markov-chain", *tiny, "--set", f"lr={value()}", "--store", folder],
                ["train", "--world", "markov-chain", *tiny, "--store", value()],
                ["run", rng.choice([*studies, value()]), "--on", rng.choice(["processes:²", "ray:x", value()])],
                ["run", "markov/hessian", "--device", value(), "--store", folder],
                ["run", "markov/hessian", "--set", f"{value()}={value()}", "--store", folder],
                ["run", "markov/hessian", "--seeds", value(), "--store", value(), "--on", "nowhere"],
                ["claims", rng.choice([*studies, value()]), "--store", rng.choice([folder, value()])],
                ["report", "--store", rng.choice([folder, value()]), "--out", f"{folder}/report"],
                ["publish", value(), "--store", folder, "--to", f"{folder}/docs"],
                ["doctor", "--store", rng.choice([folder, value()])],
                ["coverage", "--folder", value()],
                [value(), value()],
                [rng.choice(["sample", "run", "train", "compile", "claims"]), f"--{value()}"],
            ]
        )

    return [one() for _ in range(count)]


def attempt(words: list[str]) -> str:
    """How a command ends: its exit code, or what should not have been."""
    from sandlab.cli import call

    screen = io.StringIO()
    try:
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            code = call(words)
    except BrokenPipeError:
        return "exit 0"
    except BaseException as problem:
        if type(problem).__name__ == "_Late":
            return "hang"
        return f"raw {type(problem).__name__}: {traceback.format_exc().splitlines()[-1][:150]}"
    text = screen.getvalue()
    if "Traceback" in text or code not in DOCUMENTED:
        last = [line for line in text.splitlines() if line and not line.startswith("sandlab:")]
        place = [line.strip() for line in text.splitlines() if "/sandlab/" in line]
        return f"raw exit {code}: {last[-1][:150] if last else ''} {place[-1][-70:] if place else ''}"
    if "MemoryError" in text:
        return "raw more than 3 GB"
    if any(ord(letter) < 32 and letter not in "\n\t\r" for letter in text):
        return "raw control characters on the screen"
    return f"exit {code}"


def run(count: int, seed: int = 0, chunk: int = 20, seconds: float = float("inf")) -> collections.Counter[str]:
    """The ends of `count` commands, each chunk of them in a process of its own."""
    import junk

    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)
        try:
            lines = commands(count, seed, folder)
            listed = [(" ".join(words)[:160], _attempt(words)) for words in lines]
            return junk.run_listed(listed, chunk, lambda call: str(call()), seconds)
        finally:
            os.chdir(here)


def _attempt(words: list[str]) -> Callable[[], object]:
    return lambda: attempt(words)
