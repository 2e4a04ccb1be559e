"""The ground of the lenses: log-probabilities in the batch's shape, and the flat loss."""

import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.predictions import evaluating, log_predictions, mean_loss
from sandlab.models import Transformer
from sandlab.models.base import seeded
from sandlab.worlds.base import Batch


def small_batch(answers: int = 6) -> Batch:
    tokens = torch.randint(3, (5, 6), generator=torch.Generator().manual_seed(0))
    targets = tokens[:, -answers:]
    return Batch(tokens, targets, torch.ones_like(targets, dtype=torch.bool))


def small_model() -> Transformer:
    with seeded(0):
        return Transformer(vocab=3, length=6, layers=1, width=8, init_std=0.5).double()


def test_predictions_are_laws_and_are_cut_to_the_positions_that_have_targets():
    model = small_model()
    whole, last = log_predictions(model, small_batch()), log_predictions(model, small_batch(answers=1))
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(5, 6, dtype=torch.float64))
    torch.testing.assert_close(last, whole[:, -1:])


def test_the_mean_loss_of_a_batch_is_torchs_own_cross_entropy():
    model, batch = small_model(), small_batch()
    expected = nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
    torch.testing.assert_close(mean_loss(model, batch), expected)


def test_evaluation_switches_dropout_off_and_gives_the_mode_back():
    model = nn.Dropout(0.5).train()
    with evaluating(model):
        torch.testing.assert_close(model(torch.ones(50)), torch.ones(50))
    assert model.training


def test_the_flat_loss_at_the_models_own_point_is_the_loss_and_moving_it_moves_the_model():
    model, batch = small_model(), small_batch()
    flat = FlatLoss(model, batch)
    torch.testing.assert_close(flat(flat.point), mean_loss(model, batch))
    moved = flat.point + 0.1
    by_vector = flat(moved)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    torch.testing.assert_close(by_vector, mean_loss(model, batch))


def test_a_flat_loss_of_some_parameters_leaves_the_others_alone():
    model, batch = small_model(), small_batch()
    flat = FlatLoss(model, batch, only="unembed*")
    assert flat.point.shape == (24,)
    # With a zero readout every prediction is uniform, whatever the rest of the model does.
    torch.testing.assert_close(flat(torch.zeros_like(flat.point)), torch.tensor(3.0, dtype=torch.float64).log())
    with pytest.raises(BadInput, match="unembed"):
        FlatLoss(model, batch, only="unembedd.weight")
