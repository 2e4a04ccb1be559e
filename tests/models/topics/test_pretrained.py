"""The adapter for pretrained encoders, on tiny checkpoints made here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.models.topics.pretrained import load_encoder
from sandlab.worlds.topics.text import read_documents, tokenize

transformers = pytest.importorskip("transformers")
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
KINDS = {
    "bert": ("BertConfig", "BertModel", SIZES),
    "albert": ("AlbertConfig", "AlbertModel", SIZES | {"embedding_size": 8}),
    "electra": ("ElectraConfig", "ElectraModel", SIZES | {"embedding_size": 8}),
    "roberta": ("RobertaConfig", "RobertaModel", SIZES),
    "bart": ("BartConfig", "BartModel", {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1,
             "encoder_attention_heads": 2, "decoder_attention_heads": 2}),
}  # fmt: skip


def checkpoint(folder: Path, kind: str) -> None:
    """A tiny encoder with random weights and a word-piece tokenizer of its own."""
    words = sorted({word for text in read_documents() for word in text.lower().split() if word.isalpha()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##s", "f"]
    tokenizer = transformers.BertTokenizerFast(vocab={word: index for index, word in enumerate(vocabulary)})
    config, model, options = KINDS[kind]
    torch.manual_seed(0)
    made = getattr(transformers, model)(
        getattr(transformers, config)(vocab_size=len(vocabulary), max_position_embeddings=64, pad_token_id=0, **options)
    )
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_local_checkpoints_give_embeddings_and_attention(kind: str, tmp_path: Path) -> None:
    checkpoint(tmp_path, kind)
    encoder = load_encoder(tmp_path)
    corpus = tokenize(read_documents(), encoder.tokenizer).windows(12)
    tokens = torch.from_numpy(corpus.documents[0])[None]
    found = encoder.mean_attention(tokens)
    assert found.shape == (1, len(tokens[0]), len(tokens[0]))
    # What is left of each query's attention went to the two special tokens.
    assert ((found.sum(-1) < 1) & (found.sum(-1) > 0.5)).all()
    assert encoder.table().shape[0] == corpus.vocab
    assert (
        "frog" in corpus.types and corpus.stop[corpus.types.index("[CLS]")] and corpus.whole[corpus.types.index("frog")]
    )


def test_the_attention_is_that_of_the_model_itself(tmp_path: Path) -> None:
    checkpoint(tmp_path, "bert")
    encoder = load_encoder(tmp_path)
    tokens = torch.tensor([[7, 9, 11, 8]])
    plain = transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        layers = plain(torch.tensor([[2, 7, 9, 11, 8, 3]]), output_attentions=True).attentions
    expected = torch.cat(layers, 1).mean(1)[:, 1:-1, 1:-1]
    torch.testing.assert_close(encoder.mean_attention(tokens), expected)


def test_a_random_control_has_other_weights_and_a_missing_folder_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, "bert")
    first, again = (load_encoder(tmp_path, random=True, seed=3).table() for _ in range(2))
    assert torch.equal(first, again) and not torch.equal(first, load_encoder(tmp_path).table())
    with pytest.raises(BadInput, match=r"config\.json"):
        load_encoder(tmp_path / "nothing")
