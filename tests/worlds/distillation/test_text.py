"""Masked text from a file, and the generated stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.distillation.text import MaskedText, substitute_text


def test_windows_of_a_file_are_its_words_and_rare_words_are_unknown(tmp_path: Path) -> None:
    words = [f"w{i % 7}" for i in range(300)] + ["rare"]
    file = tmp_path / "text.txt"
    file.write_text(" ".join(words))
    world = MaskedText(str(file), words=10, window=8)
    tokens, names = world.text
    assert names[0] == "<unk>" and len(names) == 9 and "rare" in names
    batch = world.sample(200, rng=rng(0))
    assert batch.inputs.shape == (200, 9) and bool((batch.targets[:, 0] == world.bos).all())
    joined = " ".join(names[int(token)] for token in batch.targets[3, 1:])
    assert joined in " ".join(words)
    assert not (batch.mask & (batch.targets == world.bos)).any()
    assert ((batch.inputs == batch.targets) | batch.mask).all()
    small = MaskedText(str(file), words=10, window=8).digest
    assert small == world.digest and torch.equal(tokens, world.text[0])


def test_trainings_never_see_the_held_out_end(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text(" ".join(["early"] * 200 + ["late"] * 50))
    world = MaskedText(str(file), words=10, window=4, held_out=0.2)
    late, early = (world.text[1].index(word) for word in ("late", "early"))
    assert set(world.sample(50, rng=rng(0)).targets[:, 1:].unique().tolist()) == {late}
    assert set(world.at(3).sample(50, rng=rng(0)).targets[:, 1:].unique().tolist()) == {early}


def test_the_stand_in_needs_no_file_and_bad_files_are_refused(tmp_path: Path) -> None:
    assert len(set(substitute_text().split())) > 50
    assert MaskedText().sample(2, rng=rng(0)).inputs.shape == (2, 65)
    with pytest.raises(BadInput, match="path"):
        MaskedText(str(tmp_path / "nothing.txt"))
    short = tmp_path / "short.txt"
    short.write_text("a b c")
    with pytest.raises(BadInput, match="at least 100"):
        _ = MaskedText(str(short)).text
