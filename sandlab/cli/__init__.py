"""The terminal: `sandlab list`, `show`, `sample`, `run`, `claims`, `train`, `report` and the rest.

Nothing heavy is imported before a command needs it. A room may bring commands of its own: a file `commands.py` with a
`typer.Typer()` called `commands`, which imports nothing but typer at its top.
"""

from __future__ import annotations

import inspect
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sandlab.cli import (
    benchmarks,
    browse,
    card,
    circuits,
    decoding,
    exporting,
    new,
    results,
    serve,
    studies,
    training,
)
from sandlab.cli.options import NAMED, load_plugin
from sandlab.cli.screen import documents_alone, tell, with_synonym
from sandlab.errors import BadInput

__all__ = ["app", "main"]

_WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number",
    "Input should be": "it must be",
    "missing argument": "this command needs the argument",
    "missing option": "this command needs the option",
    "got unexpected extra argument(s)": "there is no place for",
    "option: --quick": "option: --quick, it is what runs without --full",
    "option: --preset": "option: --preset, --full is the larger one",
}
CLAIM_FAILED, BAD_INPUT, COULD_NOT_FINISH, BUG, INTERRUPTED = 1, 2, 3, 4, 130


def _bare() -> typer.Typer:
    """The terminal without commands."""
    made = typer.Typer(
        name="sandlab",
        help="A laboratory of structured worlds with exact truth: look at them, train on them, check published claims.",
        epilog="Start with:  sandlab list studies  ·  sandlab show markov/weight-tying  ·  sandlab tour",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(_options)
    return made


def _make() -> typer.Typer:
    made = _bare()
    for part in (
        browse,
        studies,
        training,
        circuits,
        decoding,
        results,
        benchmarks,
        new,
        card,
        exporting,
        serve,
    ):
        made.registered_commands.extend(part.commands.registered_commands)
    for command in made.registered_commands:  # lines of a docstring flow together: the terminal breaks them
        paragraphs = (inspect.getdoc(command.callback) or "").split("\n\n")
        command.help = command.help or "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return made


def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(help="File or module of your own worlds, models or studies; anywhere on the line, repeatable."),
    ] = None,
) -> None:
    if version:
        import sandlab

        tell(sandlab.__version__)
        raise typer.Exit


app = _make()


def _named(arguments: Sequence[str]) -> typer.Typer:
    """The terminal with the command that is named first alone: typer reads the options of every command it is given."""
    asked = arguments[0] if arguments else ""
    found = [each for each in app.registered_commands if each.callback and _name(each) == asked]
    if not found:
        return app
    made = _bare()
    made.registered_commands = found
    return made


def _name(command: typer.models.CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", "")).replace("_", "-")


class Terminated(BaseException):
    """The system asked the process to end (SIGTERM, SIGHUP)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exit codes: 0; 1 a claim fails that held in its source; 2 bad input; 3 the machine failed (disk,
    permissions, cluster) or a job could not finish; 4 a bug; 5 the budget is spent; 130 Ctrl-C; 143 and 129 SIGTERM
    and SIGHUP."""
    warnings.showwarning = lambda message, *_about: tell(f"sandlab: {message}", file=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with documents_alone("--json" in given):
            code = call(given)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone: what Python writes at its end has no place
        code = 0
    sys.exit(code)


def call(arguments: list[str]) -> int:
    """Run a command and return its exit code; what a user can mend is said in one sentence."""
    try:
        arguments = _load_plugins(arguments)
        code = int(_named(arguments)(arguments, standalone_mode=False, prog_name="sandlab") or 0)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except BadInput as problem:
        return _say(str(problem), BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        return _say("interrupted: what was finished is kept, the same command goes on from there", INTERRUPTED)
    except Terminated as end:
        return _say("ended by the system: what was finished is kept, the same command goes on from there", end.args[0])
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        raise
    except SystemExit as end:  # click and rich end with code 1 when a reader has gone
        raise end.__context__ if isinstance(end.__context__, BrokenPipeError) else end from None
    except Exception as problem:
        return _explain(problem, arguments)


def _load_plugins(arguments: list[str]) -> list[str]:
    """Load what every `--plugin` names, and return the other arguments."""
    NAMED.clear()
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            return [*rest, word, *waiting]
        if word != "--plugin" and not word.startswith("--plugin="):
            rest.append(word)
            continue
        source = word.partition("=")[2] or (waiting.pop(0) if waiting else "")
        if not source:
            raise BadInput("--plugin needs a file or a module: sandlab --plugin my_lab.py list worlds")
        load_plugin(source)
        NAMED.append(source)
    return rest


def _explain(problem: Exception, arguments: list[str]) -> int:
    """Say in a sentence what went wrong, by its kind."""
    import sqlite3

    if any(kind.__name__ == "ClickException" for kind in type(problem).__mro__):  # click, or typer's copy of it
        return _say(_misused(problem, arguments), BAD_INPUT)
    if isinstance(problem, FloatingPointError):  # a training whose loss became infinite
        return _say(str(problem), BAD_INPUT)
    if type(problem).__name__ == "ClusterLost":
        _say(str(problem), COULD_NOT_FINISH)
        os._exit(COULD_NOT_FINISH)  # Ray would wait for its head, and then abort the process
    if type(problem).__name__ in ("JobFailed", "StoreFull"):
        return _say(str(problem), COULD_NOT_FINISH)
    if isinstance(problem, NotImplementedError):  # a world without an oracle, say
        return _say(str(problem), BAD_INPUT)
    if isinstance(problem, (OSError, sqlite3.Error, MemoryError)):
        return _say(
            f"the machine failed ({type(problem).__name__}: {problem}): nothing finished is lost", COULD_NOT_FINISH
        )
    tell("".join(traceback.format_exception(problem)), file=sys.stderr)
    return _say("this is a bug of SandLab: please report it with the lines above", BUG)


def _misused(problem: Any, arguments: list[str]) -> str:
    """What is wrong with a line that does not parse, as one sentence, and where its command is explained."""
    told = " ".join(problem.format_message().split()).rstrip(".")
    told = told[:1].lower() + told[1:].replace(". Did you", ": did you").replace("Possible options", "there is")
    for theirs, ours in _WORDS.items():
        told = told.replace(theirs, ours)
    options = getattr(getattr(problem.ctx, "command", None), "params", ())
    known = [each.name for each in options]
    short = told.removeprefix("no such option: -").partition(" ")[0]
    if any(short in each.opts for each in options):  # --n for -n
        told = f"no such option: -{short}: did you mean {short!r}?"
    elif told.startswith("no such option") and "settings" in known and ", " not in told.partition(" (")[0]:
        told += "; a setting is given by --set NAME=VALUE"
    command = next((_name(each) for each in app.registered_commands if _name(each) == arguments[0]), "")
    path = getattr(problem.ctx, "command_path", f"sandlab {command}".strip())
    return f"{told} (this was given: {shlex.join(arguments)}; `{path} --help` explains it)"


def _end(number: int, _frame: object) -> None:
    raise Terminated(128 + number)


def _say(message: str, code: int) -> int:
    tell(f"sandlab: {with_synonym(message) if code == BAD_INPUT else message}", file=sys.stderr)
    return code
