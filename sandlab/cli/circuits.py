"""`sandlab compile`: a regular expression or an automaton into a model with exact weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, open_folder
from sandlab.cli.screen import tell

__all__ = ["commands"]

commands = typer.Typer()
_WORDS_FOR_PRECISION = 8
_MOST_BITS = 40
_SHOWN_LETTERS = 12
_LONGEST = 4096
_SHOWN_COMPONENTS = 8
# The sentences of refusals end with what to try instead, which a table of everything that was tried need not repeat.
_ADVICE = re.compile(r"[:,;] (try|take) method .*$")


@commands.command(
    "compile",
    epilog="Example:  sandlab compile '(abab)*' --length 100   ·   sandlab compile S5 --method scan --save s5/   ·   "
    'sandlab compile \'{"transitions": [[1, 0], [1, 1]], "start": 0}\' --pictures pictures/',
)
def compile_machine(
    machine: Annotated[str, typer.Argument(help="A regular expression, a name such as S5, a JSON file, or JSON text.")],
    length: Annotated[int, typer.Option(help="Longest word.")] = 64,
    method: Annotated[str, typer.Option(help="A construction; auto takes the shallowest that applies.")] = "auto",
    accept: Annotated[bool, typer.Option("--accept", help="Predict acceptance instead of the state.")] = False,
    save: Annotated[Path | None, typer.Option(help="Folder for the model's config and weights.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for drawings of the machine and the circuit.")] = None,
    compare: Annotated[bool, typer.Option(help="Try every construction and print how large each is.")] = True,
    as_json: AsJson = False,
) -> int:
    """Compile an automaton: its algebra, the size of each construction, a check, and the model on request.

    A JSON automaton is {"transitions": [[…], …], "start": 0, "accepting": [1], "letters": ["a", …]}, a row per state;
    transitions may also be given by names. Exit code 1 when the check finds a wrong label.
    """
    from sandlab.circuits.automata.compiler import compile, verify
    from sandlab.cli.screen import print_json
    from sandlab.errors import integer
    from sandlab.random import rng
    from sandlab.worlds.automata.reading import read_machine

    integer("--length", length, 1, _LONGEST)
    world = read_machine(machine)
    if accept:
        world = _acceptance(world)
    for folder in filter(None, (save, pictures)):
        open_folder(folder)
    model = compile(world, length, method)
    facts: dict[str, Any] = {
        "machine": machine,
        "algebra": _algebra(world),
        "note": getattr(model.config, "note", "") or f"{method}: one step per letter",
    }
    facts["methods"] = _methods(world, length) if compare else []
    facts["check"] = verify(model, world, exhaustive_up_to=4096, rng=rng(0))
    if save is not None:
        facts["saved"] = str(model.save(save))
    if pictures is not None:
        facts["pictures"] = _draw(model, world, pictures, min(length, _SHOWN_LETTERS))
    errors = facts["check"]["exhaustive_errors"] + facts["check"]["random_errors"]
    if as_json:
        print_json(facts)
    else:
        _print(facts, length, errors)
    return int(errors > 0)


def _acceptance(machine: Any) -> Any:
    from sandlab.errors import BadInput

    if machine.accepting is None:
        raise BadInput('--accept needs accepting states: give a regular expression, or "accepting" in the JSON')
    return machine.observe([int(state in machine.accepting) for state in range(machine.states)])


def _algebra(machine: Any) -> dict[str, Any]:
    """What the machine is: states, letters, its transformation semigroup, whether constant depth is possible."""
    from sandlab.circuits.automata.krohn_rhodes import depth_report
    from sandlab.errors import BadInput

    facts: dict[str, Any] = {"states": machine.states, "letters": machine.alphabet}
    try:
        semigroup = machine.semigroup()
        facts |= {"semigroup": len(semigroup), "group": semigroup.is_group, "aperiodic": semigroup.is_aperiodic}
        report = depth_report(machine)
    except BadInput as too_large:
        return {**facts, "depth": str(too_large)}
    found = {"solvable": report.solvable, "levels": report.levels, "groups": list(report.groups)}
    return {**facts, **found, "depth": report.statement, "decomposition": _decomposition(machine)}


def _decomposition(machine: Any) -> list[dict[str, Any]]:
    """The components of the holonomy decomposition from the top: what each decides among, and by which group."""
    form, names = machine.decomposition, machine.names_of_states

    def written(number: int) -> list[str]:
        return [name for name, inside in zip(names, form.sets[number]) if inside]

    return [
        {
            "level": component.level,
            "set": written(component.representative),
            "tiles": [written(tile) for tile in component.tiles],
            "group": component.group_name if len(component.group) > 1 else "",
        }
        for component in sorted(form.components, key=lambda component: -component.level)
    ]


def _methods(machine: Any, length: int) -> list[dict[str, Any]]:
    """Size of each construction, and the fewest bits behind the point with which it is still exact."""
    import torch

    from sandlab.circuits.automata.compiler import METHODS, compare_methods
    from sandlab.circuits.precision import bits_needed
    from sandlab.progress import ProgressBar
    from sandlab.random import rng
    from sandlab.worlds.automata._running.words import lasting_words

    words = lasting_words(machine, _WORDS_FOR_PRECISION, length, rng(0, "precision"))
    targets = torch.as_tensor(machine.labels)[machine.run(words)]
    rows: list[dict[str, Any]] = []
    with ProgressBar("compile", len(METHODS), unit="constructions") as bar:
        for name in METHODS:
            (report,) = compare_methods(machine, length, (name,))
            row: dict[str, Any] = {"method": name, "applies": report.applies, "note": report.reason}
            if report.size is not None:
                size = report.size
                needed = bits_needed(METHODS[name](machine, length), words, targets, most=_MOST_BITS)
                row |= {"depth": size.depth, "steps": length if size.length is None else 1, "width": size.widest}
                row |= {"heads": size.heads, "largest weight": size.norm, "parameters": size.parameters}
                row["bits"] = needed
            rows.append(row)
            bar.update(len(rows))
    return rows


def _draw(model: Any, machine: Any, folder: Path, letters: int) -> list[str]:
    """State diagram, Cayley graph, tower, wiring, the circuit at work on a word; what is too large is left out."""
    from sandlab.circuits import draw_computation, draw_wiring
    from sandlab.errors import BadInput
    from sandlab.random import rng
    from sandlab.worlds.automata._running.words import lasting_words
    from sandlab.worlds.automata.algebra.towers import draw_tower
    from sandlab.worlds.automata.drawing import draw_cayley_graph, draw_machine

    word = lasting_words(machine, 1, letters, rng(2))[0]
    drawings = {
        "machine": lambda: draw_machine(machine),
        "cayley": lambda: draw_cayley_graph(machine.semigroup(), letters=machine.letters),
        "tower": lambda: draw_tower(machine),
        "wiring": lambda: draw_wiring(model),
        "computation": lambda: draw_computation(model, machine, word),
    }
    made = []
    for name, draw in drawings.items():
        try:
            figure = draw()
        except (BadInput, AttributeError):  # too many states to be read, or a recurrent circuit without layers
            continue
        figure.savefig(folder / f"{name}.svg")
        made.append(str(folder / f"{name}.svg"))
    return made


def _print(facts: dict[str, Any], length: int, errors: int) -> None:
    from sandlab.cli.screen import print_table

    algebra = facts["algebra"]
    tell(f"{facts['machine']}: {algebra['states']} states, {algebra['letters']} letter{'s'[: algebra['letters'] > 1]}")
    if "semigroup" in algebra:
        kind = "a group" if algebra["group"] else "no groups (aperiodic)" if algebra["aperiodic"] else "not a group"
        held = f", holds {', '.join(dict.fromkeys(algebra['groups']))}" if algebra.get("groups") else ""
        tell(f"semigroup: {algebra['semigroup']} maps of the states, {kind}{held}")
    tell(f"depth: {algebra['depth']}")
    components = algebra.get("decomposition", [])
    for component in components[:_SHOWN_COMPONENTS]:
        tell(f"  level {component['level']}: {_component(component)}")
    if len(components) > _SHOWN_COMPONENTS:
        tell(f"  … and {len(components) - _SHOWN_COMPONENTS} components more (--json lists them)")
    works = [row for row in facts["methods"] if row["applies"]]
    if works:
        columns = ["method", "layers", "width", "heads", "largest weight", "parameters", "bits", "how"]
        title = f"Constructions for words of up to {length} letters"
        print_table(columns, [_row(row) for row in sorted(works, key=_cost)], title)
        tell("width: widest layer; bits: behind the point, for weights and activations, with which it stays exact")
        print_table(["does not apply", "because"], _refusals(facts["methods"]))
    tell(f"{facts['note']}\n{_check(facts['check'], errors)}")
    if "saved" in facts:
        tell(f"saved in {facts['saved']}: sandlab.models.load reads it")
    for picture in facts.get("pictures", []):
        tell(f"drawn: {picture}")


def _component(component: dict[str, Any]) -> str:
    """What a component decides among, and how it moves: "{0, 1, 2} into {0, 1} {1, 2}: resets"."""
    sets = [_set(tile) for tile in component["tiles"]]
    tiles = " ".join(sets[:4]) + (f" … ({len(sets)})" if len(sets) > 4 else "")
    moves = f"{component['group']} and resets" if component["group"] else "resets"
    return f"{_set(component['set'])} into {tiles}: {moves}"


def _set(states: list[str]) -> str:
    return "{" + ", ".join(states if len(states) <= 5 else [states[0], "…", states[-1]]) + "}"


def _cost(row: dict[str, Any]) -> tuple[int, int]:
    return row["depth"] * row["steps"], row["width"]


def _row(row: dict[str, Any]) -> list[Any]:
    layers = f"{row['depth']}" if row["steps"] == 1 else f"{row['depth']} × {row['steps']} steps"
    bits = f"> {_MOST_BITS}" if row["bits"] is None else row["bits"]
    how = row["note"].removeprefix(f"{row['method']}: ")
    weight = f"{row['largest weight']:.4g}"
    return [row["method"], layers, row["width"], row["heads"], weight, f"{row['parameters']:,}", bits, how]


def _refusals(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Constructions that do not apply, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["applies"]:
            reasons.setdefault(_ADVICE.sub("", row["note"]), []).append(row["method"])
    return [[", ".join(methods), reason] for reason, methods in reasons.items()]


def _check(check: dict[str, Any], errors: int) -> str:
    words = f"all {check['exhaustive_words']} words of {check['exhaustive_length']} letters"
    result = "no wrong label" if not errors else f"{errors} wrong labels"
    return f"checked on {words} and on random words of {check['random_length']}: {result}"
