"""A program with a limit on its memory and processor time: `python -m sandlab.atlas.bounded MODULE ARGUMENTS…`."""

from __future__ import annotations

import os
import resource
import runpy
import sys

__all__ = ["SECONDS", "main"]

SECONDS = 2 * 3600
_GRACE = 60  # seconds in which a training writes down what there is


def main(words: list[str]) -> None:
    """Run a module as a program that may use half of this machine's memory and `SECONDS` of processor time."""
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    for kind, soft, hard in (
        (resource.RLIMIT_DATA, half, half),  # memory that is really asked for: a GPU's driver reserves addresses
        (resource.RLIMIT_CPU, SECONDS, SECONDS + _GRACE),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        most = resource.getrlimit(kind)[1]
        cut = hard if most == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(kind, (min(soft, cut), cut))
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
