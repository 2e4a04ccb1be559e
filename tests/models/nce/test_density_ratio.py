"""The density-ratio network: its formula, its constraints, and that it learns a known log-ratio."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.nce.networks import ContrastiveLoss
from sandlab.models.base import seeded
from sandlab.models.nce.density_ratio import DensityRatio, _Convolution
from sandlab.worlds.nce.image_contrast import ImageContrast


def build(seed: int = 0, **settings: object) -> DensityRatio:
    with seeded(seed):
        return DensityRatio(**{"size": 8, "body": "mlp", "features": 16, "width": 32, **settings})


@pytest.mark.parametrize("body", ["mlp", "resnet18"])
def test_the_log_ratio_is_minus_a_positive_quadratic_of_the_features(body):
    model = build(body=body, width=8).double()
    images = torch.randn(5, 1, 8, 8, generator=sl.rng(0), dtype=torch.float64)
    features = model.body(images)
    matrix = model.quadratic()
    assert float(torch.linalg.eigvalsh(matrix).min().detach()) >= model.config.floor * (1 - 1e-9)
    expected = -torch.einsum("bi,ij,bj->b", features, matrix, features) - features @ model.slope - model.level
    logits = model(images)
    torch.testing.assert_close(logits[:, 1], expected)
    assert bool((logits[:, 0] == 0).all())


def test_resnet_has_eighteen_weight_layers_and_treats_each_image_alone():
    model = build(body="resnet18", width=8)
    layers = [m for m in model.body.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    shortcuts = [m for m in layers if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (1, 1)]
    assert len(layers) - len(shortcuts) == 18
    images = torch.randn(4, 1, 8, 8, generator=sl.rng(1))
    torch.testing.assert_close(model(images)[:1], model(images[:1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kernel", "stride", "side"), [(3, 1, 8), (3, 2, 8), (3, 2, 7), (1, 2, 8), (3, 2, 1)])
def test_convolution_by_patches_equals_the_library_and_keeps_a_member_axis(kernel, stride, side):
    layers = [_Convolution(3, 4, kernel, stride=stride, padding=kernel // 2, bias=False).double() for _ in range(2)]
    images = torch.randn(5, 3, side, side, generator=sl.rng(5), dtype=torch.float64)
    expected = torch.stack(
        [torch.nn.functional.conv2d(images, layer.weight, stride=stride, padding=kernel // 2) for layer in layers]
    )
    torch.testing.assert_close(torch.stack([layer(images) for layer in layers]), expected)
    weights = {"weight": torch.stack([layer.weight for layer in layers])}
    together = torch.func.vmap(lambda w: torch.func.functional_call(layers[0], w, (images,)))(weights)
    torch.testing.assert_close(together, expected)


def test_cross_entropy_of_the_logits_is_the_nce_loss():
    world, model = ImageContrast("mixture"), build()
    batch = world.sample(64, rng=sl.rng(2))
    logits = model(batch.inputs)
    plain = torch.nn.functional.cross_entropy(logits, batch.targets)
    torch.testing.assert_close(ContrastiveLoss("nce")(logits, batch), plain)
    ratio, sign = logits[:, 1], 2 * batch.targets - 1
    torch.testing.assert_close(ContrastiveLoss("ence")(logits, batch), torch.exp(-sign * ratio / 2).mean())
    both = torch.stack([logits, 2 * logits])
    torch.testing.assert_close(ContrastiveLoss("nce")(both, batch)[0], plain)


def test_small_synthetic_images_are_told_from_noise_nearly_as_well_as_possible():
    world = ImageContrast("mixture", size=4, bumps=3, spread=0.5)
    model = build(size=4, width=64)
    held_out = world.sample(2000, rng=sl.rng(5))
    sl.learning.train(
        model,
        world,
        steps=600,
        batch_size=128,
        rng=sl.rng(4),
        objective=ContrastiveLoss("nce"),
        optimizer="normalised",
        lr=0.1,
        schedule="linear",
        progress=False,
    )
    with torch.no_grad():
        ratio = model.log_ratio(held_out.inputs).double()
        loss = float(ContrastiveLoss("nce")(model(held_out.inputs), held_out))
    assert world.optimal_loss(held_out) < loss < 0.5 * np.log(2)
    truth = held_out.truth["log_ratio"]
    assert float(torch.corrcoef(torch.stack([ratio, truth]))[0, 1]) > 0.8


def test_bad_settings_are_refused_in_one_sentence():
    with pytest.raises(BadInput, match="body must be one of"):
        DensityRatio(body="resnet50")
    with pytest.raises(BadInput, match="width must be a multiple of 4"):
        DensityRatio(width=10)
    with pytest.raises(BadInput, match="kind must be one of"):
        ContrastiveLoss("infonce")
