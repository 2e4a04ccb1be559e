"""A saved encoder on a text of one's own, from the tokenizer to the ratios, against loops over the model's outputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sandlab.lenses.topics.lda import fit_lda, topic_words
from sandlab.lenses.topics.report import TopicReport, topic_report
from sandlab.models.topics.pretrained import PretrainedEncoder, load_encoder
from sandlab.worlds.topics.text import TextCorpus, TopicText, read_documents, tokenize

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
NAMES = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), SPECIAL))
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SHARE = 0.02


def word_pieces(texts: list[str]) -> Any:
    made = tokenizers.BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(texts, vocab_size=500, min_frequency=1, show_progress=False)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made._tokenizer, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        pad_token="[PAD]", mask_token="[MASK]",
    )  # fmt: skip


def byte_pairs(texts: list[str]) -> Any:
    """Words with the mark Ġ of the blank before them, as Roberta's and Bart's."""
    made = tokenizers.ByteLevelBPETokenizer(add_prefix_space=True, lowercase=True)
    made.train_from_iterator(texts, vocab_size=900, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, **NAMES)


def unigrams(texts: list[str]) -> Any:
    """Words with the mark ▁, as Albert's."""
    made = tokenizers.SentencePieceUnigramTokenizer()
    made.train_from_iterator(
        [text.lower() for text in texts], vocab_size=500, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, **NAMES)


CASES = {
    "bert": (word_pieces, "BertConfig", "BertModel"),
    "roberta": (byte_pairs, "RobertaConfig", "RobertaModel"),
    "electra": (unigrams, "ElectraConfig", "ElectraModel"),
}


def saved(folder: Path, kind: str, texts: list[str]) -> PretrainedEncoder:
    """A tiny encoder of random weights, not near zero, with a tokenizer trained on the text; loaded from its folder."""
    make: Callable[[list[str]], Any] = CASES[kind][0]
    tokenizer = make(texts)
    _, config, model = CASES[kind]
    torch.manual_seed(0)
    options = SIZES | {"vocab_size": len(tokenizer), "max_position_embeddings": 64, "initializer_range": 0.5}
    getattr(transformers, model)(getattr(transformers, config)(**options)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_encoder(folder)


def own_text(folder: Path) -> list[str]:
    """The laboratory's articles as a file of the user's, read back as documents."""
    (folder / "mine.txt").write_text("\n\n".join(read_documents()), encoding="utf-8")
    return read_documents(folder / "mine.txt", "paragraphs")


def by_loops(encoder: PretrainedEncoder, corpus: TextCorpus, law: np.ndarray, stop: np.ndarray) -> TopicReport:
    """Averages over ordered pairs of positions and of words, from the model's own attention and embedding rows."""
    lists = topic_words(law, SHARE, stop=stop)
    topic = {int(word): number for number, words in enumerate(lists) for word in words}
    names = {True: "same", False: "different"}
    attention: dict[str, list[float]] = {"same": [], "different": []}
    first, last = encoder._around
    assert first is not None and last is not None
    for document in corpus.documents:
        with torch.no_grad():
            given = torch.tensor([[first, *document.tolist(), last]])
            layers = encoder.model(input_ids=given, output_attentions=True).attentions
        mean = torch.cat(layers, 1)[0].mean(0)[1:-1, 1:-1].double().numpy()
        for (i, a), (j, b) in itertools.product(enumerate(document.tolist()), repeat=2):
            if a != b and a in topic and b in topic:
                attention[names[topic[a] == topic[b]]].append(mean[i, j] * len(document) / 100)
    rows = encoder.model.get_input_embeddings().weight.detach().double().numpy()
    cosine: dict[str, list[float]] = {"same": [], "different": []}
    dot: dict[str, list[float]] = {"same": [], "different": []}
    for a, b in itertools.permutations(topic, 2):
        name, product = names[topic[a] == topic[b]], float(rows[a] @ rows[b])
        dot[name].append(product)
        cosine[name].append(product / float(np.linalg.norm(rows[a]) * np.linalg.norm(rows[b])))
    means = [{name: float(np.mean(each[name])) for name in each} for each in (cosine, dot, attention)]
    return TopicReport(len(topic), *means)


@pytest.mark.parametrize("kind", CASES)
def test_a_checkpoint_and_a_text_go_through_the_whole_protocol(kind: str, tmp_path: Path) -> None:
    texts = own_text(tmp_path)
    encoder = saved(tmp_path / kind, kind, texts)
    corpus = tokenize(texts, encoder.tokenizer).windows(24)
    stop = corpus.stop | ~corpus.whole
    law = fit_lda(np.where(stop, 0, corpus.counts()), topics=3, passes=10)
    found = topic_report(encoder, corpus.documents, law, SHARE, stop=stop)
    expected = by_loops(encoder, corpus, law, stop)
    assert found.words == expected.words >= 6
    for measure in ("cosine", "dot", "attention"):
        # A tokenizer is trained a little differently each time: now and then no window holds words of two topics.
        assert getattr(found, measure) == pytest.approx(getattr(expected, measure), rel=1e-5, nan_ok=True), measure
    # The control draws its weights anew, from another seed, with the architecture and the tokenizer of the checkpoint.
    control = topic_report(load_encoder(tmp_path / kind, random=True, seed=3), corpus.documents, law, SHARE, stop=stop)
    assert control.words == found.words
    assert all(control.cosine[name] != found.cosine[name] for name in ("same", "different"))


@pytest.mark.parametrize("kind", CASES)
def test_windows_of_the_longest_length_are_read(kind: str, tmp_path: Path) -> None:
    texts = [" ".join(own_text(tmp_path))]
    encoder = saved(tmp_path / kind, kind, texts)
    longest = tokenize(texts, encoder.tokenizer).windows(encoder.longest).documents[0]
    assert len(longest) == encoder.longest == 60
    found = encoder.mean_attention(torch.from_numpy(longest)[None])
    assert found.shape == (1, 60, 60) and bool(found.isfinite().all())


@pytest.mark.parametrize("kind", CASES)
def test_words_are_whole_and_pieces_inside_words_are_not_whatever_marks_a_tokenizer_uses(
    kind: str, tmp_path: Path
) -> None:
    texts = [*own_text(tmp_path), "the frogs and the toads sing the song of the pond " * 5]
    tokenizer = CASES[kind][0](texts)
    corpus = tokenize(texts, tokenizer)
    number = {text: index for index, text in enumerate(corpus.types)}
    mark = {"bert": "", "roberta": "Ġ", "electra": "▁"}[kind]
    assert f"{mark}the" in number and corpus.whole[number[f"{mark}the"]] and corpus.stop[number[f"{mark}the"]]
    assert f"{mark}frog" in number and corpus.whole[number[f"{mark}frog"]] and not corpus.stop[number[f"{mark}frog"]]
    assert not corpus.whole[tokenizer.all_special_ids].any() and corpus.stop[tokenizer.all_special_ids].all()
    spoken = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}
    for text, whole in zip(corpus.types, corpus.whole):
        assert whole == (text.removeprefix(mark).lower() in spoken) or text.startswith("##"), text
        assert not (whole and text.startswith("##")), text
    # Numbers are the tokenizer's own, so that they find their rows in the encoder's table.
    for text, document in zip(texts, corpus.documents):
        assert document.tolist() == tokenizer(text, add_special_tokens=False).input_ids


@pytest.mark.parametrize("kind", CASES)
def test_masked_windows_of_a_text_are_drawn_with_any_saved_tokenizer(kind: str, tmp_path: Path) -> None:
    texts = own_text(tmp_path)
    saved(tmp_path / kind, kind, texts)
    world = TopicText(path=str(tmp_path / "mine.txt"), tokenizer=str(tmp_path / kind), split="paragraphs", length=12)
    words = world.sample(20, rng=torch.Generator().manual_seed(0)).truth["words"]
    known = {tuple(each[at : at + 12] + 1) for each in world.corpus.documents for at in range(len(each) - 11)}
    assert all(tuple(row) in known for row in words.tolist())
