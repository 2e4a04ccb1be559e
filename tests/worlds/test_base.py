import math

import pytest
import torch

import sandlab as sl
from sandlab.worlds.base import Batch, cross_entropy


def test_cross_entropy_counts_only_masked_positions() -> None:
    probabilities = torch.tensor([[[0.5, 0.5], [0.25, 0.75]]], dtype=torch.float64)
    batch = Batch(torch.zeros(1, 2).long(), torch.tensor([[0, 1]]), torch.tensor([[False, True]]))
    assert float(cross_entropy(probabilities.log(), batch)) == pytest.approx(-math.log(0.75))


def test_a_soft_target_that_excludes_a_class_costs_nothing_there() -> None:
    probs = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    batch = Batch(torch.zeros(1, 1).long(), probs, torch.ones(1, 1, dtype=torch.bool))
    assert batch.soft
    assert float(cross_entropy(probs.log(), batch)) == 0.0


def test_predictions_are_cut_to_the_last_positions() -> None:
    log_probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]]).log()
    batch = Batch(torch.zeros(1, 2).long(), torch.tensor([[1]]), torch.ones(1, 1, dtype=torch.bool))
    assert float(cross_entropy(log_probs, batch)) == pytest.approx(-math.log(0.8))


def test_a_batch_can_be_sliced_and_moved_with_its_truth() -> None:
    batch = Batch(torch.arange(6).view(3, 2), torch.arange(3), torch.ones(3).bool(), {"state": torch.arange(3)})
    part = batch[1:].to("cpu")
    assert len(part) == 2 and part.truth["state"].tolist() == [1, 2] and not part.soft


def test_unknown_world_parameters_suggest_the_nearest() -> None:
    with pytest.raises(sl.BadInput, match="did you mean 'length'"):
        sl.worlds.MarkovChain.from_settings({"lenght": 4})


def test_what_a_world_writes_it_reads_back_wherever_its_letters_allow() -> None:
    read = []
    for name in sl.names("worlds"):
        kind = sl.get("worlds", name)
        try:
            world = kind()
            batch = world.sample(3, rng=sl.rng(0))
            if batch.inputs.is_floating_point() or batch.inputs.ndim != 2:
                continue
            texts = [world.render(row) for row in batch.inputs]
        except (TypeError, sl.BadInput, NotImplementedError, IndexError):
            continue  # made in Python, or without letters of its own
        if len(set(world.letters)) < len(world.letters) or type(world).render is not sl.worlds.World.render:
            continue
        for row, text in zip(batch.inputs, texts):
            assert world.read_text(text).tolist() == row.tolist(), name
        read.append(name)
    assert len(read) >= 25
    with pytest.raises(sl.BadInput, match="has no letter"):
        sl.worlds.Dyck().read_text("(x)")
