"""The notebooks run from top to bottom, and what they show is what they say."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def notebooks(docs):
    return docs("notebook_pages")


def check_worlds(names) -> None:
    assert names["entropy"][0] > names["entropy"][-1] and names["harder"].order == 2


def check_training(names) -> None:
    assert names["history"].loss[-1] < names["history"].loss[0] and names["after"] != names["before"]


def check_automaton(names) -> None:
    from sandlab.lenses import accuracy
    from sandlab.random import rng

    for model in names["constructions"].values():
        assert accuracy(model, names["machine"], examples=64, rng=rng(9)) == 1.0
    assert names["states"].tolist() == [1, 0, 1, 0, 1, 0]


def check_decoding(names) -> None:
    rows = names["results"]
    assert rows["rejection"]["distance"] < rows["token by token"]["distance"] < rows["the model alone"]["distance"]
    assert rows["value guided"]["distance"] < 0.1


def check_study(names) -> None:
    assert {finding.verdict for finding in names["outcome"].findings} == {"holds"}


CHECKS = {
    "1-world-and-oracle": check_worlds,
    "2-train-and-look-inside": check_training,
    "3-compile-an-automaton": check_automaton,
    "4-decode-with-a-verifier": check_decoding,
    "5-write-a-study": check_study,
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_notebook_runs_and_keeps_its_promises(notebooks, name) -> None:
    names, outputs = notebooks.run(name)
    assert any(outputs)
    CHECKS[name](names)


def test_every_notebook_is_checked_and_kept_with_what_it_showed(notebooks) -> None:
    assert notebooks.names() == list(CHECKS)
    for name in notebooks.names():
        document = json.loads((notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
        assert document["nbformat"] == 4 and len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
        assert any(cell.get("outputs") for cell in document["cells"])
        page = notebooks.page(name)
        assert page.startswith("# ") and "```python" in page and "<img " in page
