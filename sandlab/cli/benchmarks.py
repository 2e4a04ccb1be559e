"""`sandlab bench`: speed ratios against baselines that run beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, open_folder
from sandlab.cli.screen import tell

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab bench startup data_generation --quick --out report/")
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks; all when left out.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The same as naming it; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter measurements: a minute or two, more noise.")] = False,
    minutes: Annotated[float, typer.Option(help="Stop after this time and keep what is measured.", min=0.1)] = 9.5,
    against: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A checkout of a public repository: time its generators and ours instead."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and the figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Speed ratios against the baselines, measured in the same run on this machine."""
    from sandlab.cli.screen import print_json
    from sandlab.lab._bench.figures import write_measurements
    from sandlab.lab._bench.measure import benchmark_files, measure_against, measure_all

    def progress(text: str) -> None:
        tell(text, file=sys.stderr, flush=True)

    if out is not None:
        open_folder(out)
    if against is not None:
        measured = measure_against(against, progress, minutes=minutes)
    else:
        files = benchmark_files([*(names or []), *(only or [])] or None)
        measured = measure_all(files, progress, quick=quick, minutes=minutes)
    if out is not None:
        write_measurements(measured, out)
    if as_json:
        print_json(measured)
    else:
        _print(measured)


def _print(measured: dict[str, Any]) -> None:
    from sandlab.cli.screen import print_table, text_number
    from sandlab.lab._bench.figures import machine_words

    rows = [
        [
            row["benchmark"],
            row["name"],
            f"{text_number(row['ours'])} {row.get('unit', '')}",
            f"{text_number(row['baseline'])} {row.get('unit', '')}" if row.get("baseline") else "",
            f"{row['ratio']:.3g}×" if row.get("ratio") else "",
            row.get("against", ""),
        ]
        for row in measured["rows"]
    ]
    print_table(
        ["benchmark", "case", "ours", "baseline", "ratio", "baseline is"], rows, machine_words(measured["machine"])
    )
    for note in measured["notes"]:
        tell(note)
