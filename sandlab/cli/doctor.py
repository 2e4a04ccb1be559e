"""`sandlab doctor`: check a store and mend it."""

from __future__ import annotations

import warnings

import typer

from sandlab.cli.options import AsJson, StoreFolder

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab doctor --store runs")
def doctor(store: StoreFolder = None, as_json: AsJson = False) -> int:
    """Check every file of a store, mend what can be mended, and say what was done.

    The index is brought in line with the folders, leftovers of killed runs are removed, every result and every run is
    compared with its checksums. Damaged ones are named: they are computed again when they are asked for. Exit code 3
    when something is damaged.
    """
    from sandlab.cli.screen import print_json
    from sandlab.lab._store.store import Store

    opened = Store.existing(store)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = opened.mend_index() + [f"{name} was a leftover and was removed" for name in opened.tidy()]
        damaged = [str(record.path) for record in opened.records() if not record.intact()]
        damaged += [str(opened.cache.path(key)) for key in opened.cache.stored() if opened.cache.read(key) is None]
    damaged += [str(each.message) for each in told if str(each.message).split(" ", 1)[0] not in damaged]
    if as_json:
        print_json({"store": str(opened.folder), "done": done, "damaged": damaged})
    else:
        runs, jobs = len(opened.records()), len(opened.cache.stored())
        print(f"{opened.folder}: {runs} runs, {jobs} results of jobs")
        print("\n".join([*done, *(f"damaged: {name}" for name in damaged)]) or "nothing to mend")
    return 3 if damaged else 0
