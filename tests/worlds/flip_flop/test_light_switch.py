"""Stories are flip-flop strings, sentence by sentence."""

from __future__ import annotations

import torch

import sandlab as sl
from sandlab.worlds.flip_flop.language import FlipFlop
from sandlab.worlds.flip_flop.light_switch import VOCABULARY, LightSwitchStory, light_switch_text


def test_light_switch_text_tells_the_string_and_leaves_the_last_read_open() -> None:
    (text,) = light_switch_text(torch.tensor([[0, 3, 2, 4, 1, 3]]))
    assert text == "Alice turns the light off. Bob eats an apple. The light is turned"


def test_stories_are_the_strings_told_word_by_word() -> None:
    story = LightSwitchStory(16).sample(6, rng=sl.rng(4))
    batch = FlipFlop.ignoring(0.8, length=16).sample(6, rng=sl.rng(4))
    texts = light_switch_text(torch.cat([batch.inputs, batch.targets[:, -1:]], 1), ask=False)
    tokens = torch.cat([story.inputs, story.targets[:, -1:]], 1)
    for row, text in zip(tokens.tolist(), texts):
        words = text.replace(".", " .").split()
        assert [VOCABULARY[token] for token in row[: len(words)]] == words and not any(row[len(words) :])
    assert int(story.mask.sum()) == int(batch.mask.sum())


def test_the_oracle_knows_every_answer() -> None:
    world = LightSwitchStory(40, ignore=0.5)
    assert world.optimal_loss(world.sample(50, rng=sl.rng(0))) == 0.0
