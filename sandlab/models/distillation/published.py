"""GPT-2 and BERT as the experiments use them: settings of the configurable transformer."""

from __future__ import annotations

from sandlab.models.transformer import TransformerConfig

__all__ = ["bert", "bert_wiki", "gpt2", "gpt2_parity"]


def gpt2_parity(
    dimension: int = 100,
    heads: int = 32,
    *,
    head_width: int = 8,
    width: int | None = None,
    average: bool = False,
    layers: int = 2,
    dropout: float = 0.1,
) -> TransformerConfig:
    """GPT-2 on the coordinates of sparse parity as tokens: class logits at the last one, untied embeddings.

    Width heads · head_width unless given; with `average` the heads, each as wide as the stream, are averaged
    (Figure 4.13c: head_width = width = 256). Dropout 0.1 is the library's default; the source is silent.
    """
    return TransformerConfig(
        vocab=2, length=dimension, layers=layers, heads=heads, width=width or heads * head_width,
        head_width=head_width, outputs=2, dropout=dropout, attention_dropout=dropout, embedding_dropout=dropout,
        read="last", average_heads=average,
    )  # fmt: skip


def gpt2(
    vocab: int,
    length: int,
    heads: int = 32,
    *,
    layers: int = 4,
    head_width: int = 8,
    dropout: float = 0.1,
    hidden_keys: bool = False,
) -> TransformerConfig:
    """GPT-2: pre-norm, learned positions, GELU of 4 × width, heads of width 8.

    Padding comes last and needs no hidden keys; lenses that hide tokens ask for them.
    """
    return TransformerConfig(
        vocab=vocab, length=length, layers=layers, heads=heads, width=heads * head_width, head_width=head_width,
        dropout=dropout, attention_dropout=dropout, embedding_dropout=dropout, hidden_keys=hidden_keys,
    )  # fmt: skip


def bert(
    vocab: int, length: int, heads: int = 32, *, layers: int = 4, head_width: int = 8, dropout: float = 0.1
) -> TransformerConfig:
    """BERT: an encoder with post-norm, normalised embeddings, learned positions and the masked-token head."""
    return TransformerConfig(
        vocab=vocab, length=length, layers=layers, heads=heads, width=heads * head_width, head_width=head_width,
        causal=False, norm="post", norm_eps=1e-12, dropout=dropout, attention_dropout=dropout,
        embedding_dropout=dropout, readout_bias=True, hidden_keys=True, embedding_norm=True, masked_head=True,
    )  # fmt: skip


def bert_wiki(vocab: int, length: int, heads: int = 12, *, layers: int = 12, dropout: float = 0.1) -> TransformerConfig:
    """BERT for text: 12 layers, heads of width 64; the teacher has 12 (width 768), the student 4 (width 256)."""
    return bert(vocab, length, heads, layers=layers, head_width=64, dropout=dropout)
