"""The scripts that build the documentation stand in a folder of their own and import each other by name."""

import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def docs():
    """docs(name): one of the scripts of the documentation, imported."""
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module
    sys.path.remove(str(DOCS))
