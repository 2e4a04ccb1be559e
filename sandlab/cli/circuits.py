"""`sandlab compile`: a regular expression or an automaton into a model with exact weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson

__all__ = ["commands"]

commands = typer.Typer()
_WORDS_FOR_PRECISION = 8
_MOST_BITS = 40


@commands.command(
    "compile",
    epilog="Example:  sandlab compile '(abab)*' --length 64   ·   sandlab compile S5 --method scan --save s5/",
)
def compile_machine(
    machine: Annotated[str, typer.Argument(help="A regular expression, a name such as S5, or a JSON file.")],
    length: Annotated[int, typer.Option(help="Longest word.")] = 64,
    method: Annotated[str, typer.Option(help="A construction; auto takes the shallowest that applies.")] = "auto",
    save: Annotated[Path | None, typer.Option(help="Folder for the model's config and weights.")] = None,
    compare: Annotated[bool, typer.Option(help="Try every construction and print how large each is.")] = True,
    as_json: AsJson = False,
) -> int:
    """Compile an automaton: its algebra, the size of each construction, a check, and the model on request.

    Exit code 1 when the check finds a wrong label.
    """
    from sandlab.circuits.automata.compiler import compile, verify
    from sandlab.cli.screen import print_json, print_table
    from sandlab.random import rng
    from sandlab.worlds.automata.reading import read_machine

    world = read_machine(machine)
    model = compile(world, length, method)
    facts: dict[str, Any] = {
        "machine": machine,
        "algebra": _algebra(world),
        "note": getattr(model.config, "note", f"{method}: one step per letter"),
    }
    facts["methods"] = _methods(world, length) if compare else []
    facts["check"] = verify(model, world, exhaustive_up_to=4096, rng=rng(0))
    if save is not None:
        facts["saved"] = str(model.save(save))
    errors = facts["check"]["exhaustive_errors"] + facts["check"]["random_errors"]
    if as_json:
        print_json(facts)
        return int(errors > 0)
    print(", ".join(f"{name}: {value}" for name, value in facts["algebra"].items()))
    if compare:
        rows = [[row[name] for name in ("method", "depth", "width", "bits", "note")] for row in facts["methods"]]
        print_table(
            ["method", "layers", "width", "bits", "why"], rows, f"Constructions for words of up to {length} letters"
        )
    print(f"{facts['note']}\n{_check(facts['check'], errors)}")
    if save is not None:
        print(f"saved in {facts['saved']}")
    return int(errors > 0)


def _algebra(machine: Any) -> dict[str, Any]:
    """What the machine is: states, letters, its transformation semigroup, whether constant depth is possible."""
    semigroup = machine.semigroup()
    parts = {"group": semigroup.is_group, "aperiodic": semigroup.is_aperiodic, "solvable": machine.is_solvable}
    return {
        "states": machine.states,
        "letters": machine.alphabet,
        "semigroup": len(semigroup),
        **{name: "yes" if value else "no" for name, value in parts.items()},
        "levels": machine.decomposition.levels,
    }


def _methods(machine: Any, length: int) -> list[dict[str, Any]]:
    """Size of each construction, and the fewest bits behind the point with which it is still exact."""
    import torch

    from sandlab.circuits.automata.compiler import METHODS, compare_methods
    from sandlab.circuits.automata.precision import bits_needed

    words = torch.randint(machine.alphabet, (_WORDS_FOR_PRECISION, length), generator=torch.Generator().manual_seed(0))
    targets = torch.as_tensor(machine.labels)[machine.run(words)]
    rows = []
    for report in compare_methods(machine, length):
        row = {"method": report.method, "applies": report.applies, "note": report.reason, "depth": "", "width": ""}
        if report.size is not None:
            needed = bits_needed(METHODS[report.method](machine, length), words, targets, most=_MOST_BITS)
            row |= {"depth": report.size.depth, "width": report.size.widest, "parameters": report.size.parameters}
            row["bits"] = f"> {_MOST_BITS}" if needed is None else needed
        rows.append({"bits": "", **row})
    return rows


def _check(check: dict[str, Any], errors: int) -> str:
    words = f"all {check['exhaustive_words']} words of {check['exhaustive_length']} letters"
    result = "no wrong label" if not errors else f"{errors} wrong labels"
    return f"checked on {words} and on random words of {check['random_length']}: {result}"
