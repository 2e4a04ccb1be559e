"""How many tags the small JSON model writes: exact means under both laws of a language, and those of the decoders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import pytest
import torch

from sandlab.decoding.generators.hugging_face import LanguageModel, load_language_model
from sandlab.decoding.text import decode_text
from sandlab.decoding.verifiers.healing import token_bytes

TAG = '("x"|"yy"|"z")'
ENDINGS = rf',"tags":\[({TAG}(,{TAG}){{0,2}})?\]}}'
NAMES = ("Ada", "Alan", "Emmy", "Kurt")
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"enum": list(NAMES)},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["x", "yy", "z"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
LAWS = {
    "masking": "local",
    "tokenwise-rejection": "local",
    "adaptive-rejection": "given",
    "rejection": "given",
    "early-abort": "given",
}


def endings() -> list[str]:
    """What a record ends with, the tags in it."""
    lists = [tags for count in range(4) for tags in product(('"x"', '"yy"', '"z"'), repeat=count)]
    return [f',"tags":[{",".join(tags)}]}}' for tags in lists]


def tags_in(text: str) -> int:
    return text.partition("[")[2].count('"') // 2


@dataclass(frozen=True)
class TagMean:
    """The mean number of tags, and how far off it may be: what was left out could all have three tags, or none."""

    mean: float
    within: float


def exact_means(model: LanguageModel, prompt: str, texts: list[str], floor: float) -> dict[str, TagMean]:
    """Sums over all token strings that write one of the texts, but beginnings that `floor` is above under both laws.

    local   each token from the model, renormalised among those that lead to a text: the product of these
    given   the product of the model's own probabilities, over its sum
    """
    whole = {text.encode() for text in texts}
    begins = {text[:cut] for text in whole for cut in range(len(text) + 1)}
    table, start = token_bytes(model).of, model.encode(prompt)
    follow: dict[bytes, list[int]] = {}
    counts, lost = {"local": Counter(), "given": Counter()}, Counter()
    frontier = [((), b"", 1.0, 1.0)]
    while frontier:
        longer = []
        for place in range(0, len(frontier), 1024):
            part = frontier[place : place + 1024]
            with torch.no_grad():
                logits = model.generator.model(torch.tensor([[*start, *each[0]] for each in part])).logits[:, -1]
            for (tokens, text, local, given), probs in zip(part, logits.double().softmax(-1).numpy()):
                if text not in follow:
                    follow[text] = [token for token, own in enumerate(table) if own and text + own in begins]
                end = probs[model.eos] if text in whole else 0.0
                total = probs[follow[text]].sum() + end
                if text in whole:
                    tags = tags_in(text.decode())
                    counts["local"][tags] += local * end / total
                    counts["given"][tags] += given * end
                for token in follow[text]:
                    weights = local * probs[token] / total, given * probs[token]
                    if max(weights) < floor:
                        lost["local"] += weights[0]
                        lost["given"] += weights[1]
                    else:
                        longer.append(((*tokens, token), text + table[token], *weights))
        frontier = longer
    return {law: _mean(counts[law], lost[law]) for law in counts}


def _mean(weights: Counter, lost: float) -> TagMean:
    total = sum(weights.values())
    return TagMean(sum(tags * weight for tags, weight in weights.items()) / total, 3 * lost / total)


def check(
    model: LanguageModel, prompt: str, texts: list[str], floor: float, samples: int, laws: dict, **language: object
) -> None:
    exact = exact_means(model, prompt, texts, floor)
    assert all(each.within < 0.02 for each in exact.values())
    for number, (algorithm, law) in enumerate(laws.items()):
        results = decode_text(
            model, prompt, algorithm=algorithm, n=samples, max_new=40, seed=number, fast_forward=False, **language
        )
        assert all(each.text in texts for each in results)
        tags = torch.tensor([tags_in(each.text) for each in results], dtype=torch.float64)
        error = float(tags.std()) / samples**0.5
        assert abs(float(tags.mean()) - exact[law].mean) < 4 * error + exact[law].within, (algorithm, exact[law])


@pytest.fixture(scope="module")
def loaded(json_folder) -> LanguageModel:
    return load_language_model(json_folder)


def test_tags_after_a_record_that_was_begun_have_the_exact_mean(loaded):
    check(loaded, 'Person 7: {"name":"Ada","age":36', endings(), floor=1e-6, samples=1000, laws=LAWS, regex=ENDINGS)


@pytest.mark.slow
def test_tags_of_whole_records_have_the_exact_mean(loaded):
    records = [f'{{"name":"{name}","age":{age}{ending}' for name, age, ending in product(NAMES, range(100), endings())]
    check(loaded, "Person 7: ", records, floor=5e-6, samples=500, laws={**LAWS, "vgb": "local"}, json_schema=SCHEMA)
