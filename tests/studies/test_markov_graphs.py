"""Studies of causal graphs and of induction, at toy size."""

import numpy as np
import pytest
import torch
from stand_in import LAB

from sandlab.circuits import causal_graph_estimator, parent_heads_estimator
from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.registry import get
from sandlab.studies.markov import (
    attention_sink,
    causal_graph,
    chi2_gradient,
    graph_runs,
    induction_depth_width,
    induction_heads,
    interleaved_lags,
    multiple_parents,
)
from sandlab.worlds.markov.causal_graphs import InContextTree
from sandlab.worlds.recall import KHopInduction


def verdicts(name: str, **changes) -> dict[str, str]:
    study = get("studies", name)
    outcome, findings = study.measure(study.config("quick", **changes), LAB)
    assert outcome.figures
    return {finding.claim.split(".")[1]: finding.verdict for finding in findings}


def test_the_construction_by_hand_is_read_as_the_graph_it_was_made_for():
    for name in ("chain", "pairs", "random"):
        parents = graph_runs.family(name, 8)
        model = causal_graph_estimator(3, parents)
        batch = InContextTree(3, parents).sample(16, rng=rng(0))
        pattern = model.layers[0].attention.pattern
        seen = {}
        handle = pattern.register_forward_hook(lambda _m, _i, output, seen=seen: seen.update(value=output))
        model(batch.inputs)
        handle.remove()
        found = seen["value"].mean(0)[0, :-1, :-1]
        children = [child for child, parent in enumerate(parents[:-1]) if parent >= 0]
        assert [int(found[child].argmax()) for child in children] == [parents[child] for child in children]


def test_an_unknown_family_is_refused():
    with pytest.raises(BadInput, match="chain, pairs, random"):
        graph_runs.family("ring", 5)


def test_the_gradient_study_points_at_the_parents_and_needs_the_second_layer():
    found = verdicts("markov/chi2-gradient", seeds=1, length=6, sequences=2**14)
    assert found["information"] == found["needs-second-layer"] == "holds"
    assert found["points-at-parent"] != "fails"


def test_the_descent_direction_is_minus_the_derivative_of_the_loss():
    settings = chi2_gradient.Settings(length=5, sequences=512)
    parents = graph_runs.family("chain", 5)
    world = InContextTree(settings.states, parents, settings.concentration)
    job = chi2_gradient.GradientJob(parents, settings, 0, "cpu")
    descent = chi2_gradient.first_gradient(job)["descent"]
    batch = world.sample(512, rng=rng(0, "gradient"))
    model = graph_runs.matching_model(3, 5, settings.temperature, settings.floor).double()
    weight = model.get_parameter("layers.0.attention.weight")

    def loss(change: float) -> float:
        with torch.no_grad():
            weight[0, settings.states + 3, settings.states + 2] = change
            law = model(batch.inputs).log_softmax(-1)
            return float(-(batch.targets * law).sum(-1).mean())

    slope = (loss(1e-3) - loss(-1e-3)) / 2e-3
    assert descent[3, 2] == pytest.approx(-slope, rel=1e-3)


def test_the_first_layer_alone_finds_a_small_tree_within_a_hundred_steps():
    parents = graph_runs.family("random", 8)
    run = graph_runs.FirstLayerRun(parents, (0, 1), "cpu", states=3, steps=120, looks=4)
    found = graph_runs.train_first_layer(run)
    assert found["match"].shape == (2, 5) and (found["final match"] > 0.8).all()
    assert found["final recovered"].tolist() == [1.0, 1.0]


def test_attention_is_one_hot_once_it_is_sharpened_by_hand():
    run = graph_runs.SharpenRun(graph_runs.family("chain", 8), 0, "cpu", states=3, steps=20, batch=16)
    found = graph_runs.sharpen(run)
    assert found["sharp match"] > 0.85 > found["match"]


def test_untrained_graph_models_recover_nothing():
    first = causal_graph.FirstLayer(seeds=2, states=3, length=6, steps=2, batch=4, sharpened=1, joint_steps=4)
    found = verdicts("markov/causal-graph", seeds=2, length=5, steps=2, batch=4, first_layer=first)
    assert found["layer-by-layer"] != "holds"
    assert found["recovered"] == "fails" or found["recovered"] == "inconclusive"
    assert found["chain"] != "holds"


def test_the_other_graph_studies_run_at_toy_size():
    assert (
        verdicts("markov/many-graphs", graphs=2, length=5, steps=2, batch=4, first_layers=1, first_length=6)[
            "attention"
        ]
        != "holds"
    )
    verdicts("markov/causal-graph-ood", seeds=2, lengths=(5, 6), steps=2, batch=4)
    small = multiple_parents.Training(length=6, steps=2, batch=4)
    assert verdicts("markov/multiple-parents", seeds=2, training=small)["skip"] != "holds"


def test_parents_of_the_named_graphs():
    assert multiple_parents.parents_of("skip", 5)[5] == (4, 2)
    assert multiple_parents.parents_of("three lags", 5)[4] == (3, 2, 1)
    parent_heads_estimator(3, multiple_parents.parents_of("two lags", 6))


def test_the_sequence_studies_run_at_toy_size_and_claim_nothing_untrained():
    small = {"seeds": 2, "steps": 4, "batch": 4}
    found = verdicts("markov/induction-heads", length=12, width=8, held_out=16, looks=2, **small)
    assert found["two-layers-optimal"] != "holds"
    assert verdicts("markov/attention-sink", length=10, width=8, **small)["sink"] != "holds"
    assert verdicts("markov/interleaved-lags", length=10, width=8, layers=2, **small)["lag-found"] != "holds"
    assert verdicts("markov/order-k", length=10, width=8, **small)["three-layers"] != "holds"
    assert (
        verdicts("markov/induction-depth-width", lengths=(6, 8), widths=(4, 8), **small)["two-layers-flat"] != "holds"
    )


def test_the_drop_is_the_first_look_below_the_middle_of_the_gap():
    assert induction_heads._drop(np.array([1.2, 1.0, 0.95, 0.7, 0.6]), unigram=1.0, bigram=0.6) == 3
    assert induction_heads._drop(np.array([1.2, 1.0, 0.95]), unigram=1.0, bigram=0.6) == 2


def test_the_bayes_predictor_finds_the_lag_at_the_end_of_long_sequences_and_the_true_lag_always():
    world = interleaved_lags.world_of(interleaved_lags.Settings(length=60))
    batch = world.sample(400, rng=rng(0))
    assert float(interleaved_lags.lag_found(world, batch, world.oracle(batch))[-1]) > 0.95
    place = [world.lags.index(int(lag)) for lag in batch.truth["lag"]]
    true = world.lag_predictions(batch.inputs)[torch.arange(400), :, place].log()
    assert (interleaved_lags.lag_found(world, batch, true)[3:] == 1).all()


def test_positions_without_an_answer_do_not_count_in_the_induction_task():
    world = KHopInduction(4, 1, 10)
    batch = induction_depth_width.Answered(world).sample(20, rng=rng(0))
    assert torch.equal(batch.mask, batch.targets < 4)


def test_attention_to_the_start_is_read_off_the_recorded_pattern():
    settings = attention_sink.Settings(seeds=2, length=10, width=8, steps=1, batch=2)
    found = attention_sink.train_sink(attention_sink.SinkJob(settings, (0, 1), "cpu"))
    assert found["dormant"].shape == found["active"].shape
    # Attention of the untrained model is nearly uniform: 1/(t + 1) on the start token, t = 2 … 9.
    assert found["dormant"][:, 0] == pytest.approx(np.mean([1 / (t + 1) for t in range(2, 10)]), abs=0.05)


def test_every_circuit_of_the_chapter_is_exact():
    found = verdicts("markov/constructions", seeds=2, states=(2, 3), orders=(1, 2), examples=20, kernels=2000)
    exact = ("causal-graph", "several-parents", "induction-head", "three-layers", "two-layers", "sharpness")
    assert {found[name] for name in (*exact, "disentangled", "two-state-information", "chow-liu")} == {"holds"}
