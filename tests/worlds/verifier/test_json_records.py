"""Records as JSON: the world's membership against a JSON parser, prefixes against all words."""

from __future__ import annotations

import json

import torch

import sandlab as sl
from sandlab.worlds.verifier.json_records import NAMES, TAGS, JsonRecords

WORLD = JsonRecords()


def obeys(text: str) -> bool:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return False
    return (
        list(value) == ["name", "age", "tags"]
        and value["name"] in NAMES
        and type(value["age"]) is int
        and 0 <= value["age"] <= 99
        and len(value["tags"]) <= 3
        and all(tag in TAGS for tag in value["tags"])
    )


def strings(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch = WORLD.sample(n, rng=sl.rng(0))
    tokens = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    return tokens, batch.mask.sum(1) + 1, batch.truth["wrong"]


def test_what_is_wrong_is_what_a_json_parser_refuses():
    tokens, lengths, wrong = strings(800)
    texts = [WORLD.render(row[:cut]) for row, cut in zip(tokens, lengths)]
    assert WORLD.contains(tokens, lengths).tolist() == [obeys(text) for text in texts] == (~wrong).tolist()
    assert 0.2 < float(wrong.double().mean()) < 0.4


def test_prefixes_of_words_are_completable_and_a_wrong_record_is_not_beyond_its_error():
    tokens, lengths, wrong = strings(300)
    for cut in range(1, WORLD.length):
        rows = lengths >= cut
        alive = WORLD.completable(tokens[rows], torch.full((int(rows.sum()),), cut))
        assert bool(alive[~wrong[rows]].all())
    assert not bool(WORLD.completable(tokens[wrong], lengths[wrong]).any())
    ended = tokens[~wrong][:1].clone()
    assert not bool(WORLD.contains(ended, lengths[~wrong][:1] - 1)[0])
