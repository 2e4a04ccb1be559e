"""Text of one's own: splitting, numbering, stop words, windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.topics.text import TopicText, read_documents, split_words, tokenize

TEXT = "\n".join(
    [
        "",
        " = One = ",
        " The frog sees 3 frogs .",
        "",
        " = = Part = = ",
        " A <unk> toad , too .",
        "",
        " = Two = ",
        " The end",
    ]
)


@pytest.mark.parametrize(("split", "count"), [("articles", 2), ("paragraphs", 3), ("lines", 6), ("file", 1)])
def test_a_file_is_split_as_asked(split: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert len(read_documents(tmp_path / "a.txt", split)) == count
    (tmp_path / "b.txt").write_text(TEXT)
    assert len(read_documents(tmp_path, split)) == 2 * count


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    for path in (tmp_path / "a.txt", tmp_path / "b.txt"):
        with pytest.raises(BadInput, match="path"):
            read_documents(path)


def test_words_are_numbered_by_frequency_and_rare_ones_are_unknown() -> None:
    corpus = tokenize(["The frog sees the frog, the toad", "a <unk> 7"], size=3)
    assert corpus.types == ("[MASK]", "[UNK]", "the", "frog", ",")
    assert corpus.documents[0].tolist() == [2, 3, 1, 2, 3, 4, 2, 1] and corpus.documents[1].tolist() == [1, 1, 1]
    assert corpus.stop.tolist() == [True, True, True, False, True]
    assert corpus.whole.tolist() == [False, False, True, True, False]
    assert corpus.counts()[0].tolist() == [0, 2, 3, 2, 1]
    assert corpus.numbers(["frog", "newt", "the"]) == [3, 2]


def test_any_function_is_a_tokenizer() -> None:
    corpus = tokenize(["abba", "cab"], list)
    assert set(corpus.types[2:]) == set("abc") and [len(each) for each in corpus.documents] == [4, 3]
    assert split_words("It's <unk>: 42!") == ["it", "'", "s", "[unk]", ":", "42", "!"]


def test_windows_cover_the_documents_without_crossing_them() -> None:
    corpus = tokenize(["a b c d e", "f g h"])
    pieces = [piece.tolist() for piece in corpus.windows(2).documents]
    assert pieces == [corpus.documents[0][:2].tolist(), corpus.documents[0][2:4].tolist(),
                      corpus.documents[1][:2].tolist()]  # fmt: skip


def test_samples_are_masked_windows_of_the_text() -> None:
    world = TopicText(length=20, marked=8)
    batch = world.sample(200, rng=rng(0))
    text = np.concatenate([*world.corpus.documents])
    places = {tuple(text[start : start + 20]) for start in range(len(text) - 19)}
    assert all(tuple(row) in places for row in batch.truth["words"].tolist())
    shown, predicted = batch.inputs % world.outputs, batch.inputs >= world.outputs
    assert torch.equal(shown[~predicted], batch.truth["words"][~predicted])
    assert 0.1 < float(predicted.double().mean()) < 0.2 and (shown[predicted] == 0).double().mean() > 0.7
    assert len(world.letters) == world.vocab


def test_a_saved_tokenizer_keeps_its_numbers_shifted_by_one(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "frog", "toad", "##s", "the"]
    transformers.BertTokenizerFast(vocab={word: index for index, word in enumerate(words)}).save_pretrained(
        tmp_path / "tokenizer"
    )
    (tmp_path / "text.txt").write_text("The frogs the toad the frog frog toads")
    world = TopicText(path=str(tmp_path / "text.txt"), tokenizer=str(tmp_path / "tokenizer"), length=4, split="file")
    assert world.corpus.documents[0].tolist() == [8, 5, 7, 8, 6, 8, 5, 5, 6, 7]
    found = world.sample(50, rng=rng(0)).truth["words"]
    assert world.shift == 1 and set(found.flatten().tolist()) <= {6, 7, 8, 9}
    assert world.letters[6] == "frog" and world.corpus.stop.tolist() == [True] * 5 + [False, False, True, True]
    with pytest.raises(BadInput, match="tokenizer"):
        TopicText(tokenizer="no such folder").sample(1, rng=rng(0))
