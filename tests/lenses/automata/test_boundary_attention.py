"""Scores of attention patterns that are known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab import figures
from sandlab.lenses.automata.boundary_attention import attention_uniformity, boundary_scores, draw_boundaries

STATES = torch.tensor([[0, 1, 2, 1, 0, 1]])


def test_uniformity_is_one_for_an_average_and_zero_for_a_choice():
    average = torch.ones(5, 5).tril() / torch.arange(1, 6).view(-1, 1)
    choice = torch.eye(5)
    found = attention_uniformity(torch.stack([average, choice]))
    assert found.tolist() == pytest.approx([1.0, 0.0])


def test_an_ideal_detector_scores_one_and_leaks_nothing():
    latest = torch.zeros(1, 1, 6, 6)
    latest[0, 0, torch.arange(6), torch.tensor([0, 0, 0, 0, 4, 4])] = 1
    scores = boundary_scores(latest, STATES, (0, 2))
    assert scores["score"][0].tolist() == [1.0, 0.0]
    assert scores["leakage"][0, 0] == 0.0 and scores["weight"][0].tolist() == [1.0, 0.0]
    # The right wall is visited at position 2; of the rows 2–5 the weight lies before it in rows 2 and 3.
    assert scores["leakage"][0, 1] == pytest.approx(0.5)


def test_the_base_rate_is_the_share_of_visits_in_the_prefix():
    average = (torch.ones(6, 6).tril() / torch.arange(1, 7).view(-1, 1)).expand(1, 1, 6, 6)
    scores = boundary_scores(average, STATES, (0, 2))
    shares = [1, 1 / 2, 1 / 3, 1 / 4, 2 / 5, 2 / 6]
    assert float(scores["base"][0, 0]) == pytest.approx(np.mean(shares)) == pytest.approx(float(scores["weight"][0, 0]))
    # Weight before the latest visit of the left wall (position 0, then 4): 4 of 5, then 4 of 6.
    assert float(scores["leakage"][0, 0]) == pytest.approx((4 / 5 + 4 / 6) / 6)


def test_the_picture_leaves_the_lower_triangle_to_attention():
    _, (axis,) = figures.new()
    draw_boundaries(axis, np.eye(6), STATES[0].numpy(), (0, 2), frame="red", title="a head")
    lower, upper = (np.ma.filled(image.get_array(), np.nan) for image in axis.images)
    assert np.isnan(lower[0, 1]) and np.isnan(upper[1, 0]) and lower[2, 2] == 1
    assert upper[0, 4] == 1.0 and upper[0, 2] == 0.6 and upper[0, 1] == 0.25
