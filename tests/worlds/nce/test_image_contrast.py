"""Images against Gaussian noise: exact log-ratios for synthetic images, a real reader for local MNIST files."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.nce.image_contrast import ImageContrast, read_idx


def idx_bytes(array: np.ndarray) -> bytes:
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_noise_has_the_mean_and_covariance_of_the_images():
    world = ImageContrast("digits")
    batch = world.sample(40_000, rng=sl.rng(0))
    flat = batch.inputs.flatten(1).double()
    images, noise = flat[batch.targets == 1], flat[batch.targets == 0]
    np.testing.assert_allclose(images.mean(0), noise.mean(0), atol=0.06)
    scale = images.var(0).mean()
    assert float((torch.cov(images.mT) - torch.cov(noise.mT)).abs().max() / scale) < 0.1


def test_the_synthetic_log_ratio_is_that_of_scipy_densities():
    world = ImageContrast("mixture", size=3, bumps=4)
    batch = world.sample(30, rng=sl.rng(1))
    x = batch.inputs.flatten(1).double().numpy()
    centres, (mean, root) = world._centres().numpy(), world._moments()
    parts = [stats.multivariate_normal(centre, world.spread**2 * np.eye(9)).pdf(x) for centre in centres]
    noise = stats.multivariate_normal(mean.numpy(), (root @ root.mT).numpy())
    expected = np.log(np.mean(parts, axis=0)) - noise.logpdf(x)
    np.testing.assert_allclose(batch.truth["log_ratio"].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_mixture_moments_are_those_of_its_samples():
    world = ImageContrast("mixture", size=3, bumps=4)
    drawn = world._draw_images(100_000, sl.rng(2))
    mean, root = world._moments()
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.02)
    np.testing.assert_allclose(torch.cov(drawn.mT), root @ root.mT, atol=0.05)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_local_copy_of_mnist_is_read(tmp_path, ending):
    levels = np.random.default_rng(0).integers(0, 256, (900, 28, 28)).astype(np.uint8)
    raw = idx_bytes(levels)
    (tmp_path / f"train-images-idx3-ubyte{ending}").write_bytes(gzip.compress(raw) if ending else raw)
    world = ImageContrast("mnist", folder=str(tmp_path))
    batch = world.sample(8, rng=sl.rng(3))
    assert batch.inputs.shape == (8, 1, 28, 28) and bool(torch.isfinite(batch.inputs).all())
    np.testing.assert_array_equal(read_idx(tmp_path / f"train-images-idx3-ubyte{ending}"), levels)


def test_dequantised_pixels_return_to_their_grey_levels():
    world = ImageContrast("digits")
    images = world._draw_images(50, sl.rng(4))
    share = (torch.sigmoid(images) - world.squeeze) / (1 - 2 * world.squeeze)
    levels = (share * 17).floor()
    assert float(levels.min()) == 0 and float(levels.max()) == 16


def test_bad_files_and_settings_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(BadInput, match=r"has no train-images-idx3-ubyte.*source='digits'"):
        ImageContrast("mnist", folder=str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"GIF89a")
    with pytest.raises(BadInput, match="not an IDX file"):
        ImageContrast("mnist", folder=str(tmp_path)).sample(1, rng=sl.rng(0))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((4, 28, 28), np.uint8))[:-5])
    with pytest.raises(BadInput, match="cut or damaged"):
        ImageContrast("mnist", folder=str(tmp_path)).sample(1, rng=sl.rng(0))
    with pytest.raises(BadInput, match="source must be one of"):
        ImageContrast("cifar")
    world = ImageContrast("digits")
    batch = world.sample(2, rng=sl.rng(0))
    with pytest.raises(NotImplementedError, match="no exact oracle"):
        world.oracle(batch)
