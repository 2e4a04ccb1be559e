"""The code-generation studies: small configurations run through; scores and counts against independent truth."""

from __future__ import annotations

from dataclasses import replace

import pyarrow
import pytest
import torch
from stand_in import remembering

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.studies.verifier.codegen_campaign import (
    MAIN,
    PLAIN,
    CodeCampaign,
    CodeCampaigns,
    code_campaigns,
    distinct_correct,
)
from sandlab.studies.verifier.codegen_model import CaseWriter, CodeModel, build, harvest, random_names
from sandlab.studies.verifier.codegen_published import TABLE
from sandlab.studies.verifier.codegen_settings import FULL_CAMPAIGN
from sandlab.worlds.verifier.append_cases import AppendCases

STUDIES = [name for name in sl.names("studies") if name.startswith("verifier/codegen")]
WORLD = AppendCases(cases=1, longest=1, functions=("append", "pop"), examples=1)
TINY = CodeCampaign(
    model=CodeModel(world=WORLD, width=16, heads=2, mlp_width=16, steps=60, batch_size=8, lr=1e-2),
    names=2,
    foreign=("pop",),
    completions=2,
    harvested=30,
    probe_steps=5,
    hidden=8,
)


@pytest.fixture(scope="module")
def lab():
    return remembering()


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_codegen_studies_share_one_campaign_and_measure_every_claim(lab, name, preset):
    study = sl.get("studies", name)
    outcome, findings = study.measure(study.config(preset, campaign=TINY, seeds=2), lab, preset)
    assert {finding.claim for finding in findings} == {claim.id for claim in study.claims}
    assert outcome.figures and outcome.tables
    for rows in outcome.tables.values():
        # Every column can be stored: one kind of value.
        pyarrow.table({name: [row.get(name) for row in rows] for row in rows for name in row})


def test_every_query_of_the_campaign_is_a_token_kept_or_erased(lab):
    ((found,),) = lab.map(code_campaigns, [CodeCampaigns(TINY, (0,))])
    for counts in found["ways"].values():
        assert sum(counts["queries"]) == counts["written"] == counts["paid"][:, -1].sum()
    # Four candidates for each line cost about twice as much as two.
    few, many = (sum(found["ways"][replace(PLAIN, candidates=n).label]["queries"]) for n in (2, 4))
    assert 1.4 < many / few < 2.8


def test_the_full_table_has_a_published_row_for_every_way():
    ways = [*FULL_CAMPAIGN.sampled, *FULL_CAMPAIGN.blocks, *FULL_CAMPAIGN.guided]
    assert {way.published for way in ways} == set(TABLE)


def test_quota_zero_is_plain_sampling_on_the_same_random_numbers():
    writer = untrained()
    prompts = writer.prompts(["abc", "xyz"], 0) * 3
    never = Backtracking(quota=0, top_p=0.95)
    one = writer.complete(never, prompts, (1,), verifier=LanguageVerifier(writer.world))
    other = writer.complete(Sampling(top_p=0.95), prompts, (1,))
    assert torch.equal(one.tokens, other.tokens)


def untrained() -> CaseWriter:
    torch.manual_seed(0)
    return CaseWriter(build(TINY.model).eval(), WORLD)


def test_distinct_correct_cases_are_those_that_python_executes():
    """Random documents, each assertion run by Python; a case counts once per name."""
    world = AppendCases(cases=4, longest=2, functions=("append",), errors=0.4, favour=1.0)
    batch = world.sample(60, rng=sl.rng(0))
    texts, names = [], []
    for row, mask in zip(batch.inputs, batch.mask):
        text = world.render(row[mask])
        names.append("abc" if len(names) % 2 else "xyz")
        own = text.rpartition("def ")[2][:3]
        texts.append(text.rpartition("each line:\n")[2].replace(own, names[-1]))
    seen = set()
    for place, (text, name) in enumerate(zip(texts, names)):
        for line in text.splitlines():
            space = {name: lambda given, item: [*given, item]}
            try:
                exec(line, space)
                space[name] = lambda given, item: (tuple(given), item)
                seen.add((name, eval(line.removeprefix("assert ").partition(" == ")[0], space)))
            except (AssertionError, SyntaxError):
                continue
        assert distinct_correct(texts, names, 4)[place] == len(seen)


def test_harvested_errors_end_at_the_first_token_that_makes_completion_impossible():
    """Documents stand in for the model's writing: the exact verifier says yes before the error and no at it."""
    world = AppendCases(cases=3, longest=2, functions=("append",), errors=0.3)
    batch = world.sample(200, rng=sl.rng(1))
    wrong = 0
    for row, mask, last in zip(batch.inputs, batch.mask, batch.targets):
        string = [*row[mask].tolist(), int(last[mask][-1])]
        error = world.first_error(string)
        if error is None:
            assert bool(world.contains(torch.tensor([string]), torch.tensor([len(string)])))
            continue
        wrong += 1
        tokens = torch.tensor([string, string])
        before, at = world.completable(tokens, torch.tensor([error[0], error[0] + 1])).tolist()
        assert before and not at, world.render(string)
    assert 60 < wrong < 180


def test_harvest_labels_prefixes_by_the_exact_verifier():
    tokens, lines = harvest(untrained(), 30, 0)
    for data in (tokens, lines):
        assert len(data.strings) == len(data.labels) and set(data.labels) <= {0, 1}
    width = max(map(len, tokens.strings))
    padded = torch.tensor([string + [0] * (width - len(string)) for string in tokens.strings])
    alive = WORLD.completable(padded, torch.tensor([len(string) for string in tokens.strings]))
    assert not alive[torch.tensor(tokens.labels) == 0].any()


def test_test_names_are_new_to_the_verifier():
    names = random_names(20, 3)
    assert len(set(names)) == 20 and all(len(name) == 3 and name.isalpha() for name in names)
    assert MAIN.published == (4, 4, 0.1, 0.95, 1.0, 0)
