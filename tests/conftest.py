"""Shared by all tests: one torch thread (the suite runs a process per core), no screen, plug-ins of one test alone.

Shapes in signatures are checked (`shapes.py`) unless SANDLAB_SHAPES=0; what is wrong is an error or, in some folders, a
warning.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "disabled")

# Started in the background, this process would ignore Ctrl-C, and so would those that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("sandlab", deadline=None)  # how busy the machine is decides nothing
hypothesis.settings.load_profile("sandlab")
sys.path.insert(0, str(Path(__file__).parent))
if os.environ.get("SANDLAB_SHAPES", "1") != "0":
    import shapes

    shapes.install("sandlab")
else:
    shapes = None

# Folders whose tests run much else beside the rooms: a wrong shape there is a warning, elsewhere an error.
TOLD = ("atlas", "circuits", "cli", "decoding", "docs", "faults", "lab", "learning", "studies")

# Folders and files that take longest, most of it in processes of their own: a long file at the end leaves a core idle.
LONG_FIRST = ("docs", "faults", "atlas", "lab", "cli", "test_front_door.py", "learning", "decoding", "studies")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_some_variants(items)
    rank = {folder: place for place, folder in enumerate(LONG_FIRST)}
    tests = Path(__file__).parent
    items.sort(key=lambda item: rank.get(item.path.relative_to(tests).parts[0], len(rank)))


def leave_some_variants(items: list[pytest.Item]) -> None:
    """Of a test with the mark `gate(n)`, n of its variants stay in the gate (the first, the last, evenly between)."""
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("gate") and not item.get_closest_marker("slow"):
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in variants.values():
        (count,) = each[0].get_closest_marker("gate").args
        kept = {round(k * (len(each) - 1) / max(count - 1, 1)) for k in range(count)}
        for place, item in enumerate(each):
            if place not in kept:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def strictness(request: pytest.FixtureRequest) -> None:
    if shapes is not None:
        shapes.strict = request.path.relative_to(Path(__file__).parent).parts[0] not in TOLD


@pytest.fixture(autouse=True)
def own_plugins() -> Iterator[None]:
    """A plug-in that a test adds is named in the environment, for workers: not for those of other tests."""
    before = os.environ.get("SANDLAB_PLUGINS")
    yield
    if before is None:
        os.environ.pop("SANDLAB_PLUGINS", None)
    else:
        os.environ["SANDLAB_PLUGINS"] = before
