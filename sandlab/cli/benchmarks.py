"""`sandlab bench`: speed ratios against baselines that run beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sandlab.cli.options import AsJson

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab bench startup data_generation --out report/")
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Benchmarks; all when left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for benchmarks.json and the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Speed ratios against the baselines, measured in the same run on this machine."""
    from sandlab.cli.screen import print_json, print_table, text_number
    from sandlab.lab.benchmarks import benchmark_files, measure_all, write_measurements

    files = benchmark_files(names or None)
    measured = measure_all(files, lambda text: print(text, file=sys.stderr, flush=True))
    if out is not None:
        write_measurements(measured, out)
    if as_json:
        print_json(measured)
        return
    rows = [
        [
            row["benchmark"],
            row["name"],
            f"{text_number(row['ours'])} {row.get('unit', '')}",
            f"{text_number(row['baseline'])} {row.get('unit', '')}" if row.get("baseline") else "",
            f"{row['ratio']:.3g}×" if row.get("ratio") else "",
        ]
        for row in measured["rows"]
    ]
    machine = measured["machine"]
    print_table(
        ["benchmark", "case", "ours", "baseline", "ratio"], rows, f"{machine['processor']}, {machine['cores']} cores"
    )
