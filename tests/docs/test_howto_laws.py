"""Every sentence about laws on the page about decoding is a test: which one stands here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "decode-with-a-verifier.md"
LENGTHS = "test_variable_lengths.py::test_a_promised_law_is_kept_where_strings_end_at_different_lengths"
FIFTY = "test_variable_lengths.py::test_a_promised_law_is_kept_on_fifty_languages_over_a_hundred_thousand_runs"
TAGS = "test_exact_tags.py::test_tags_after_a_record_that_was_begun_have_the_exact_mean"
SAID = "test_variable_lengths.py::test_every_decoder_says_which_law_it_samples"
COMPANY = "test_hugging_face.py::test_samples_differ_and_a_text_does_not_depend_on_its_company"
FORCED = (
    "test_hugging_face.py::test_forced_text_is_written_in_the_tokenizer_s_own_tokens_and_otherwise_in_any",
    TAGS,
)
FAR = (
    "test_variable_lengths.py::"
    "test_masking_is_far_from_the_model_given_the_language_where_the_model_would_hardly_have_finished"
)

# What the page says → the tests, in tests/decoding.
SENTENCES: dict[str, tuple[str, ...]] = {
    "A grammar can be kept in two ways, and they sample different distributions": (FAR, TAGS),
    "the model, renormalised among the allowed tokens at each step": (LENGTHS, TAGS),
    "forced text in the tokenizer's own tokens": FORCED,
    "where the model would hardly have finished, that is far from the model": (FAR,),
    "exactly the model given the language, the law of rejection sampling; no dead end is entered twice": (
        LENGTHS,
        TAGS,
        "test_variable_lengths.py::"
        "test_adaptive_rejection_computes_no_prefix_twice_and_samples_of_one_prompt_learn_together",
    ),
    "with `fast_forward=False` it draws these tokens from the model, too": FORCED,
    "All other algorithms leave every way to write a text to the model": (TAGS,),
    "Every result says its law in `law`": (
        SAID,
        "test_variable_lengths.py::test_the_law_that_is_tested_is_the_one_that_is_said",
        "test_hugging_face.py::test_the_two_laws_of_a_grammar_are_told_apart_and_both_are_true",
    ),
    "yes | the law of masking with `fast_forward=False`": (LENGTHS, TAGS),
    "no law is promised": (SAID,),
    "with exact values the model given the language, also where texts have different lengths": (LENGTHS,),
    "with the yes and no of a grammar the law of masking with `fast_forward=False`": (
        LENGTHS,
        "test_exact_tags.py::test_tags_of_whole_records_have_the_exact_mean",
    ),
    "errors of the values do not add up along the text": (
        "exact/test_walks.py::test_last_token_bias_amplifies_without_backtracking_and_not_with_it",
    ),
    "All sixteen of these laws": (FIFTY,),
    "a prompt gets the same text alone or in any company": (COMPANY,),
    "another `n` then gives other texts of the same law": (
        "test_hugging_face.py::test_the_two_laws_of_a_grammar_are_told_apart_and_both_are_true",
        TAGS,
    ),
    "what comes out has its law given success; adaptive rejection keeps its law as it is": (
        "test_healing.py::test_what_is_checked_at_the_end_leaves_the_law_given_success",
    ),
    "The law is one of the two above, after the shorter prompt and for texts with these characters in front": (
        "test_healing.py::test_with_a_language_the_law_is_the_one_that_is_told",
        "test_healing.py::test_without_a_language_it_is_the_model_s_own_law_once_the_head_is_written",
    ),
    "Without a language it is the model's own law once the characters are written": (
        "test_healing.py::test_without_a_language_it_is_the_model_s_own_law_once_the_head_is_written",
    ),
    "sampling with the processor has the law of masking": (
        "test_hugging_face.py::test_generate_with_our_processor_has_the_law_of_masking",
    ),
    "Its moves have the same law": (LENGTHS,),
}
# Where the word is a name or a heading, nothing is said about a law.
NAMES = ("## Which law", "| `law` | algorithm |", "Each result has `text`", "one query to the model is one law")


def sentences() -> list[str]:
    """The page without its code: sentences, and rows of tables."""
    prose = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = []
    for paragraph in re.split(r"\n\s*\n", prose):
        if paragraph.lstrip().startswith("|"):
            found += paragraph.splitlines()
        else:
            found += re.split(r"(?<=[.?!])\s+(?=[A-Z`*])", " ".join(paragraph.split()))
    return [" ".join(each.split()) for each in found]


@pytest.mark.parametrize("words", SENTENCES)
def test_what_is_said_about_a_law_stands_on_the_page_and_has_its_tests(words: str) -> None:
    assert any(words in each for each in sentences())
    for name in SENTENCES[words]:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / "decoding" / file).read_text(encoding="utf-8"), name


def test_no_sentence_about_a_law_is_without_a_test() -> None:
    about = [each for each in sentences() if re.search(r"\b(laws?|distributions?)\b", each)]
    assert len(about) > 15
    assert [each for each in about if not any(words in each for words in (*SENTENCES, *NAMES))] == []
