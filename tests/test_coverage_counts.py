"""How many of the ids of each source have a place in the laboratory: counted, printed, and demanded where complete."""

from __future__ import annotations

import tomllib

import pytest

from sandlab.lab._report.coverage import REPOSITORY

SIZES = {
    "01": 56, "02": 87, "03": 42, "04": 38, "05": 36, "06": 48,
    "07": 47, "08": 69, "09": 42, "10": 79, "11": 32, "12": 62,
}  # fmt: skip
"""Ids in the first section of each source's description."""

COMPLETE = ("02", "03", "04", "05", "07", "08", "10", "11")
"""Sources of which every id has a place; the others are listed with what they lack."""

MAP = [
    "markov-binary-global",
    "markov-korder-global",
    "markov-incontext",
    "markov-korder-incontext",
    "incontext-tree",
    "incontext-dag",
    "bigram-trigger",
    "bigram-backcopy",
    "markov-interleaved",
    "lda-general",
    "topic-simplified",
    "fact-recall",
    "assoc-memory",
    "parity",
    "switch-memory",
    "automaton-simulation",
    "gridworld-1d",
    "s5-word-problem",
    "dyck",
    "majority",
    "binary-addition",
    "induction-head-task",
    "k-hop-induction",
    "retrieval-copy-recall",
    "set-disjointness",
    "index-problem",
    "graph-connectivity",
    "circuit-evaluation",
    "multi-hop-reasoning",
    "incontext-linear-regression",
    "tf-1layer-markov",
    "markov-3param",
    "disentangled-tf",
    "tf-encoder-1layer-topic",
    "tf-1layer-facts",
    "linear-attn-facts",
    "am-linear",
    "am-mlp",
    "elman-rnn",
    "linear-rnn",
    "ssm-selective",
    "hybrid-rnn-attn",
    "looped-tf",
    "tf-relpos-ln",
    "gpt-small",
    "attn-uniform",
    "attn-sparse",
    "scan-tf",
    "krohn-rhodes-tf",
    "counter-tf",
    "induction-2layer",
    "causal-graph-tf",
    "multihead-kparents",
    "korder-3layer",
    "korder-2layer",
    "theta-pi",
    "theta-star-markov",
    "cot-circuit-tf",
    "parity-ssm",
    "am-outer-product",
    "rasp-l",
    "c-rasp",
    "est-incontext-k",
    "chow-liu",
    "comm-protocol-rnn",
    "comm-protocol-tf",
    "circuit-class-table",
    "chi2-mi",
    "hessian-probe",
    "flow-portrait",
    "two-stage-topic",
    "stagewise-ngram",
    "hallucination-stage",
    "fact-capacity",
    "length-gen",
    "same-length-ood",
    "gd",
    "adam",
    "gradient-flow",
]
"""The ids of the tutorial's map."""


def places(source: str) -> dict[str, object]:
    file = REPOSITORY / "coverage" / f"{source}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["ids"] if file.is_file() else {}


def counted(source: str) -> int:
    """Ids with a place, at most as many as the source has: tables may list figures besides."""
    return min(len(places(source)), SIZES[source])


def test_the_count_of_every_source_is_printed(capsys) -> None:
    rows = [f"{source}: {counted(source)} of {size}" for source, size in SIZES.items()]
    total = sum(counted(source) for source in SIZES)
    with capsys.disabled():
        print("\ncoverage " + ", ".join(rows) + f"; in all {total} of {sum(SIZES.values())}")
    assert sum(SIZES.values()) == 638 and total > 400


@pytest.mark.parametrize("source", COMPLETE)
def test_complete_sources_stay_complete(source: str) -> None:
    assert counted(source) == SIZES[source]


def test_every_id_of_the_map_has_a_place() -> None:
    assert len(MAP) == len(set(MAP)) == SIZES["10"]
    assert set(MAP) - set(places("10")) == set()
