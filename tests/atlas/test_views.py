"""What the atlas's pages of worlds and circuits are told is what the Python API says."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("starlette")
from starlette.testclient import TestClient

import sandlab as sl


def test_the_oracle_on_the_page_is_the_oracle(client: TestClient) -> None:
    world = sl.worlds.Dyck(depth=3)
    found = client.get("/api/predict", params={"name": "dyck", "text": "([]", "settings": '{"depth": "3"}'}).json()
    tokens = world.read_text("([]").unsqueeze(0)
    law = world.oracle(sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))[0].exp()
    torch.testing.assert_close(torch.tensor(found["probs"], dtype=torch.float64), law, rtol=0, atol=1e-6)
    assert found["row"] == tokens[0].tolist()
    assert found["follows"] and found["answers"] == world.letters[:4]


@pytest.mark.parametrize(
    ("world", "text", "membership", "hidden"),
    [
        ("dyck", "^([]", "word", {"depth": [0, 1, 2, 1]}),  # of the prefixes; START is no bracket
        ("dyck", "(]", "outside", {"depth": [1, 0]}),
        ("flip-flop", "w1i0r1", "word", {"stored": ["–", "1", "1", "1", "1", "1"]}),
        ("flip-flop", "w1i0", "beginning", {"stored": ["–", "1", "1", "1"]}),
        ("flip-flop", "w1r0", "outside", {"stored": ["–", "1", "1", "1"]}),
        ("cyclic", "011", "", {"state": ["0", "1", "0"]}),
        ("abab", "abab", "word", {"state": ["0", "1", "2", "3"]}),
        ("flip-flop-transduction", "1··0", "", {"state": [1, 1, 1, 0]}),
        ("addition", "1+2 5+5 9+0", "", {"carry": [0, 0, 1]}),
        ("in-context-markov", "0110", "", {}),
    ],
)
def test_a_typed_text_is_judged_and_its_hidden_states_shown(
    client: TestClient, world: str, text: str, membership: str, hidden: dict[str, list]
) -> None:
    found = client.get("/api/predict", params={"name": world, "text": text}).json()
    assert found["membership"] == membership and found["hidden"] == hidden


@pytest.mark.parametrize(
    ("world", "answers"),
    [
        ("lego", ["x0", "_"]),  # answers are letters
        ("symmetric-group", ["1234", "4321"]),  # states by their names
        ("ising", ["-", "+"]),  # what a mask may hide
        ("flip-flop-transduction", ["0", "1"]),  # neither: numbers
    ],
)
def test_what_is_predicted_has_its_name(world: str, answers: list[str]) -> None:
    from sandlab.atlas.views.oracle import world as view

    found = view(world)["answers"]
    assert [found[0], found[-1]] == answers


class Told:
    """A world whose oracle reads the answers of its batch."""

    def oracle(self, batch: sl.worlds.Batch) -> torch.Tensor:
        return torch.nn.functional.one_hot(batch.targets, 2).double().log()


def test_an_oracle_that_is_told_the_answers_says_nothing_about_a_text() -> None:
    from sandlab.atlas.views.typed_text import NoLaw, laws_of

    with pytest.raises(NoLaw, match="told the answers"):
        laws_of(Told(), torch.tensor([0, 1, 1]))


def test_the_oracle_of_a_program_answers_a_typed_prompt() -> None:
    from sandlab.atlas.views.oracle import predict, world

    facts = world("program-task")
    text = " ".join(facts["letters"][token] for token in facts["rows"][0])
    assert "probs" in predict("program-task", text)


def test_the_lines_shown_beside_a_typed_text_give_its_numbers(client: TestClient) -> None:
    found = client.get("/api/predict", params={"name": "dyck", "text": "^(["}).json()
    *lines, last = found["code"].split("\n")
    names: dict[str, object] = {"sl": sl, "torch": torch}
    exec("\n".join(lines), names)
    law = eval(last, names)
    torch.testing.assert_close(torch.tensor(found["probs"], dtype=torch.float64), law, rtol=0, atol=1e-6)


def test_settings_offer_what_the_world_allows() -> None:
    from sandlab.atlas.views.settings import offered

    fields = {each["name"]: each for each in offered(sl.worlds.Dyck())}
    assert fields["words"]["choices"] == ["prefix", "complete", "bounded"]
    assert fields["length"]["low"] == 1 and "high" not in fields["length"]
    assert (fields["opening"]["low"], fields["opening"]["high"]) == (0, 1)


def test_the_first_page_lists_the_worlds_that_are_registered() -> None:
    from sandlab.atlas.catalogue import built_in_worlds
    from sandlab.atlas.views.oracle import worlds

    everything = {each["name"]: each for each in worlds()["worlds"]}
    listed = built_in_worlds()
    assert listed == [everything[each["name"]] for each in listed]
    here = [name for name in everything if sl.get("worlds", name).__module__.startswith("sandlab.worlds.")]
    assert [each["name"] for each in listed] == here


@pytest.mark.slow
def test_every_world_has_a_page_and_answers_what_it_begins_with() -> None:
    from sandlab.atlas.catalogue import built_in_worlds
    from sandlab.atlas.views.oracle import predict, world

    silent = []
    for name in (each["name"] for each in built_in_worlds()):
        facts = world(name)
        if facts["tokens"]:
            between = "" if all(len(letter) == 1 for letter in facts["letters"]) else " "
            text = between.join(facts["letters"][token] for token in facts["rows"][0][: facts["typed"]])
            if any(" " in letter for letter in facts["letters"]):
                silent.append(name)  # what is shown cannot be typed
            else:
                found = predict(name, text)
                assert found.get("probs") or found["why"]
    assert silent == ["append-cases"]


def test_examples_are_those_of_the_seed(client: TestClient) -> None:
    found = client.get("/api/world", params={"name": "dyck", "seed": "3", "examples": "4"}).json()
    batch = sl.worlds.Dyck().sample(4, rng=sl.rng(3))
    assert found["rows"] == batch.inputs.tolist() and found["truth"]["depth"] == batch.truth["depth"].tolist()


def test_a_circuit_answers_breaks_and_loses_a_head(client: TestClient) -> None:
    asked = {"machine": "(ab)*", "length": "8", "word": "abab", "method": "scan"}
    whole = client.get("/api/circuit", params=asked).json()
    assert whole["right"] == 1 and whole["answers"] == whole["truth"] and len(whole["layers"]) >= 3
    assert len(whole["streams"]) == len(whole["layers"]) + 1
    assert len(whole["channels"]) == len(whole["streams"][0]["rows"]) and "map of 0" in whole["channels"]
    assert [each["level"] for each in whole["algebra"]["decomposition"]] == [2, 1]
    assert client.get("/api/circuit", params={**asked, "bits": "0"}).json()["right"] < 1
    assert client.get("/api/circuit", params={**asked, "off": "0.0"}).json()["right"] < 1
    assert client.get("/api/circuit", params={**asked, "temperature": "0.5"}).json()["right"] == 1
    assert client.get("/api/circuit", params={**asked, "temperature": "1e6"}).json()["right"] < 1


@pytest.mark.parametrize("change", [{}, {"bits": 2}, {"off": "0.0"}, {"temperature": 50.0}, {"bits": 9, "off": "1.0"},
                                    {"bits": 3, "off": "0.0", "temperature": 20.0}])  # fmt: skip
def test_the_lines_shown_beside_a_circuit_give_its_answers(change: dict) -> None:
    from sandlab.atlas.views.circuits import circuit

    found = circuit("(ab)*", word="abba", length=8, method="scan", **change)
    names: dict = {"sl": sl, "torch": torch}
    with torch.no_grad():
        exec(found["code"], names)
    assert names["answers"] == found["answers"]


def test_a_circuit_begins_with_one_word_that_its_language_can_complete() -> None:
    from sandlab.atlas.views.circuits import circuit

    first = circuit("(abab)*", length=10)
    assert first["word"] == [0, 1] * 5 == circuit("(abab)*", length=10, bits=1)["word"]
    assert first["accepting"] == [first["start"]] and not first["accepted"]  # ten letters are no multiple of four
    assert circuit("(abab)*", word="abababab", length=10)["accepted"]
    assert circuit("S5", length=4)["accepted"] is None


def test_a_pasted_table_is_the_machine_it_says(client: TestClient) -> None:
    table = json.dumps({"letters": ["a", "b"], "transitions": [[1, 0], [0, 1]], "start": 0})
    found = client.get("/api/circuit", params={"machine": table, "length": "8", "word": "abaab"}).json()
    assert found["transitions"] == [[1, 0], [0, 1]] and found["letters"] == ["a", "b"]
    assert found["truth"] == [1, 1, 0, 1, 1] == found["answers"]
    table = json.dumps({"letters": ["a", "b"], "transitions": [[1, 1], [0, 0]], "start": 1, "accepting": [0]})
    found = client.get("/api/circuit", params={"machine": table, "length": "8", "word": "aba"}).json()
    assert found["transitions"] == [[1, 1], [0, 0]] and (found["start"], found["accepting"]) == (1, [0])
    assert found["truth"] == [0, 1, 0] and found["accepted"]


def test_numbers_that_json_does_not_have_are_null() -> None:
    from sandlab.atlas.plain import as_json

    assert (
        as_json({"a": [1.5, float("nan")], "b": (float("inf"), "x", True)}) == b'{"a":[1.5,null],"b":[null,"x",true]}'
    )
