"""The door refuses: flags, signs, sizes, unknown options, memory, from annotations alone (D25, D26)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float
from torch import Tensor

import sandlab as sl
from sandlab.checking import checked, checked_types, fits, in_words, refuse_beyond_memory, sized
from sandlab.errors import BadInput
from sandlab.lab import Store

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.integers() | st.text(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from([np.zeros((0, 5)), np.array(3), np.int64(-3), torch.tensor([-1, 5]), object(), print, 1j, int]),
)
HINTS = {
    bool: bool,
    int: int,
    float: (int, float),
    str: str,
    int | None: (int, type(None)),
    Literal["a", "b"]: str,
    tuple[int, ...]: object,
    dict[str, int]: dict,
    Tensor: Tensor,
    str | Path: (str, Path),
}


@given(JUNK, st.sampled_from(list(HINTS)))
def test_whether_a_value_fits_can_always_be_told(value: object, hint: Any) -> None:
    if fits(hint, value) and not isinstance(value, (np.generic, np.ndarray)):
        assert isinstance(value, HINTS[hint])
    assert in_words(hint)


@checked
def made(
    size: int,
    rate: float = 0.5,
    tied: bool = False,
    weights: tuple[float, ...] = (),
    kind: Any = None,
    length: int = 1,
) -> str:
    """Something that users make."""
    torch.zeros(size)
    sum(weights)
    return str(kind.name) if kind else f"{size} {rate} {tied}"


@given(st.dictionaries(st.sampled_from(["size", "rate", "tied", "weights", "kind", "other"]), JUNK, max_size=3))
def test_any_arguments_give_a_result_or_one_sentence(arguments: dict[str, Any]) -> None:
    given_size = arguments.get("size")
    if isinstance(given_size, int) and abs(given_size) > 1000:
        arguments["size"] = given_size if given_size >= 2**63 else -1
    try:
        answer = made(**arguments)
    except BadInput as refusal:
        answer = str(refusal)
    assert "\n" not in answer and len(answer) < 1500


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 3, "tied": "false"}, "tied must be True or False, got 'false'"),
        ({"size": 3, "rate": float("nan")}, "rate must be a number, got nan"),
        ({"size": True}, "size must be a whole number, got True"),
        ({"size": 2**64}, "size must be a whole number"),
        ({"size": 3, "length": 10**7}, "length must be at most 4194304, got 10000000"),
        ({"size": 3, "tide": True}, "made has no option 'tide': did you mean 'tied'"),
        ({}, "missing a required argument: 'size'"),
        ({"size": 3, "weights": 1}, "weights must be a list of a number, got 1"),
        ({"size": -3}, "made cannot work with size=-3"),
        ({"size": 2**55}, "too large for this machine: it needs 144,115,188,075,855,872 bytes"),
        ({"size": 3, "kind": "x"}, "'str' object has no attribute 'name'"),
        ({"size": 3, "kind": sl.worlds.Dyck()}, "made cannot work with this kind"),
    ],
)
def test_the_sentence_names_the_argument(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as refusal:
        made(**arguments)
    assert words in str(refusal.value)


def test_a_bug_stays_a_bug() -> None:
    @checked
    def broken(size: int) -> int:
        return size.no_such_attribute  # type: ignore[attr-defined]

    with pytest.raises(AttributeError):
        broken(3)

    @checked
    def empty(size: int = 3, rate: float | None = None) -> int:
        return [1, 2, 3][size] if rate is None else size + [rate]  # type: ignore[operator]

    with pytest.raises(IndexError):  # nothing was given that could be to blame
        empty()
    with pytest.raises(TypeError):  # what was given is what was asked for
        empty(1, rate=0.5)

    @checked
    @dataclass
    class Odd:
        size: int

        def __post_init__(self) -> None:
            self.typo.append(self.size)  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="typo"):
        Odd(3)

    @checked_types
    def callback(function: Any) -> int:
        return function()

    def fail() -> None:
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        callback(fail)

    def unplug() -> None:
        raise OSError("the user's own disk")

    with pytest.raises(OSError, match="the user's own disk"):
        callback(unplug)

    def mistake(*_: object) -> int:
        return None + 1  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        train_with(objective=mistake)


def test_classes_are_checked_by_their_constructors() -> None:
    @checked
    @dataclass(frozen=True)
    class Thing:
        size: int
        flag: bool = False

        sizes: tuple[int, ...] = ()

    assert Thing(3) == Thing(3, False)
    with pytest.raises(BadInput, match=r"sizes must be a list of a whole number, got \[None\]"):
        Thing(3, sizes=[None])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="flag must be True or False, got 1"):
        Thing(3, 1)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="Thing has no option 'flga': did you mean 'flag'"):
        Thing(3, flga=True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "make",
    [
        lambda: sl.models.Transformer(vocab=3, length=8, tied="false"),
        lambda: sl.worlds.CopyString(distinct="no"),
        lambda: sl.models.Transformer(vocab=3, length=8, causal=torch.ones(2)),
        lambda: sl.models.RNN(vocab=3, layers=2**31),
        lambda: sl.models.MinimalDyck(types=10**5),
        lambda: sl.models.LinearAttentionFacts(vocab=3, outputs=3, start=1),
        lambda: sl.worlds.IsingClique(outside=print),
        lambda: sl.models.load("\x1b[31m"),
        lambda: sl.worlds.Dihedral(positions=2**31),
        lambda: sl.worlds.AllZeros(length=10**7),
        lambda: sl.get("models", "own-module")(module=int),
        lambda: sl.models.OneLayerMarkov(length=8, init_std=10**30),
        lambda: sl.get("circuits", "all-heads-bigram")(heads=10**7),
    ],
)
def test_flags_and_counts_of_models_and_worlds(make: Any) -> None:
    """D25."""
    with pytest.raises(BadInput):
        make()


@pytest.mark.parametrize("option", [{"lr": -1}, {"weight_decay": -5}, {"lr": [0.1, -0.1]}, {"lr": float("inf")}])
def test_training_with_a_negative_rate_is_refused(option: dict[str, Any]) -> None:
    """D25."""
    model, world = sl.models.Transformer(vocab=3, length=8, width=8), sl.worlds.InContextMarkov(states=3, length=8)
    with pytest.raises(BadInput, match=r"(lr|weight_decay) must be"):
        sl.learning.train(model, world, steps=1, rng=sl.rng(0), **option)


def test_memory_is_asked_for_before_it_is_taken() -> None:
    with pytest.raises(BadInput, match=r"a table needs 4,503,599,627,370,496 bytes, and [\d,]+ are free"):
        refuse_beyond_memory("a table", 2.0**52)
    with pytest.raises(BadInput, match="needs 4,000,000 bytes, and no more than 1,000 are expected"), sized("it", 1000):
        torch.empty(1000, 1000)
    with pytest.raises(BadInput, match=r"Transformer needs [\d,]+ bytes"):
        sl.models.Transformer(vocab=3, length=2**40)
    with pytest.raises(BadInput, match=r"examples needs [\d,]+ bytes"):
        sl.worlds.InContextMarkov().sample(2**45, rng=sl.rng(0))


def test_shapes_are_told() -> None:
    @checked
    def total(matrix: Float[Tensor, "rows 3"]) -> float:
        return float((matrix @ torch.ones(3)).sum())

    assert total(torch.ones(2, 3)) == 6.0
    with pytest.raises(BadInput, match="matrix must be a tensor"):
        total(torch.ones(2, 4))


def test_a_refusal_names_a_module_and_does_not_write_it_out(tmp_path):
    module = torch.nn.Sequential(torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5))
    with pytest.raises(BadInput, match=r"^a Sequential is not registered among the models$"):
        sl.models.save(module, tmp_path / "mine")


def judge_with(objective: Any) -> Any:
    world = sl.worlds.MarkovChain.binary(0.2, 0.3, length=8)
    model = sl.models.Transformer(vocab=2, length=8, layers=1, heads=1, width=8)
    return sl.learning.evaluate(model, world, examples=2, rng=sl.rng(0), objective=objective)


def train_with(**options: Any) -> Any:
    world, model = sl.worlds.InContextMarkov(states=3, length=8), sl.models.Transformer(vocab=3, length=8, width=8)
    return sl.learning.train(model, world, **{"steps": 1, "batch_size": 2, "rng": sl.rng(0), **options})


def measure(lens: Any, **options: Any) -> Any:
    world, model = sl.worlds.InContextMarkov(states=3, length=8), sl.models.Transformer(vocab=3, length=8, width=8)
    return lens(model, world, rng=sl.rng(0), **options)


def test_an_error_of_a_library_about_a_file_is_told_and_one_of_the_machine_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match=r"is not a valid JSON file|tokenizer must be"):
        sl.get("worlds", "topic-text")(tokenizer=str(tmp_path / "file")).sample(1, rng=sl.rng(0))

    @checked
    def write(size: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write(3)


def test_chunks_of_a_sensible_size_pass_the_door() -> None:
    assert measure(sl.lenses.tail_error, targets=64, chunk=4).count == 64
    assert 0 <= measure(sl.lenses.accuracy, examples=4, chunk=1) <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda **wrong: sl.get("worlds", "dyck", **wrong),
        lambda **wrong: sl.names("worlds", **wrong),
        lambda **wrong: sl.register("worlds", **wrong),
        lambda **wrong: sl.rng(0, **wrong),
        lambda **wrong: sl.run("markov/hessian", **wrong),
        lambda **wrong: sl.record(torch.nn.Linear(1, 1), "*", **wrong),
        lambda **wrong: Store("x", **wrong),
        lambda **wrong: sl.learning.Checkpoint("x", **wrong),
        lambda **wrong: sl.learning.Population(lambda seed: torch.nn.Linear(1, 1), seeds=[0], **wrong),
        lambda **wrong: sl.learning.evaluate(
            torch.nn.Linear(1, 1), sl.worlds.Dyck(), examples=1, rng=sl.rng(0), **wrong
        ),
        lambda **wrong: train_with(**wrong),
        lambda **wrong: sl.models.load("x", **wrong),
        lambda **wrong: sl.models.Transformer(vocab=3, length=8, **wrong),
        lambda **wrong: sl.worlds.Dyck(**wrong),
        lambda **wrong: sl.worlds.read_machine("(ab)*", **wrong),
        lambda **wrong: sl.worlds.to_parquet(sl.worlds.Dyck(), "x", 1, rng=sl.rng(0), **wrong),
        lambda **wrong: sl.worlds.WorldDataset(sl.worlds.Dyck(), seed=0, **wrong),
        lambda **wrong: sl.circuits.compile(sl.worlds.read_machine("(ab)*"), length=4, method="scan", **wrong),
    ],
)
def test_an_unknown_keyword_is_a_sentence_with_the_known_ones(make: Any) -> None:
    with pytest.raises(BadInput, match=r"has no option 'no_such_option': (it has|did you mean) "):
        make(no_such_option=1)


def test_an_error_of_the_user_s_own_factory_stays_what_it_is() -> None:
    def factory(seed: int) -> torch.nn.Module:
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        sl.learning.Population(factory, seeds=[0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: sl.worlds.IsingClique(field=10**30),
            "field must be a number, got .*: so large a number is written as 1e",
        ),
        (lambda: sl.worlds.IsingClique(outside={"a": 1}), "outside must be"),
        (lambda: sl.circuits.parity_by_uniform_attention(support=np.int64(-3)), "cannot work with .*support"),
        (lambda: sl.rng(0, device=10**30), "device must be"),
        (lambda: sl.lenses.dilution_bounds(10**7, 1.0, 1.0), "length must be at most"),
        (lambda: sl.worlds.ToyTranslation(clauses=10**7), "clauses must be at most"),
        (lambda: sl.worlds.KHopInduction(hops=2**31), "hops must be at most"),
        (lambda: sl.worlds.MaskedText(path="a" * 5000), "no file has so long a name"),
        (lambda: judge_with(int), "objective cannot be the class int"),
        (lambda: Store("a" * 5000), "the store must be a folder, got 'aaa"),
        (lambda: Store("a/" * 3000), "the store must be a folder, got 'a/a"),
        (lambda: train_with(callbacks=io.StringIO("x")), "callbacks must be a list of a function, got"),
        (lambda: train_with(callbacks=np.ones(2)), "callbacks must be a list of a function, got"),
        (lambda: train_with(callbacks={1}), "callbacks must be a list of a function, got"),
        (lambda: train_with(betas=io.StringIO("x")), "betas must be a list of a number, got"),
        (lambda: train_with(betas=range(0)), "betas must be a list of a number, got"),
        (lambda: train_with(betas=np.zeros((0, 5))), "betas must be a list of a number, got"),
        (lambda: train_with(objective=lambda *_: 1), "train cannot work with what objective returns: 'int' object"),
        (lambda: train_with(evaluate=lambda *_: 1), "train cannot work with what evaluate returns: 'int' object"),
        (lambda: train_with(optimizer=lambda *_: 1), "train cannot work with what optimizer returns: 'int' object"),
        (lambda: train_with(schedule=lambda *_: None), "train cannot work with what schedule returns: float"),
        (lambda: train_with(steps=10**9), "steps must be at most 67108864, got 1000000000"),
        (lambda: sl.get("circuits", "repeated-squaring")(3, 3, squarings=10**7), "squarings must be at most 65536"),
        (lambda: sl.get("worlds", "lda-topics")(words=10**9), "words must be at most 4194304"),
        (lambda: sl.circuits.compile(sl.worlds.read_machine("a*"), length=10**5, method="sequential"), "at most 4096"),
        (lambda: measure(sl.learning.evaluate, examples=10**7), "examples must be at most 4194304"),
        (lambda: sl.worlds.IsingClique(outside=set()), "outside must be"),
        (lambda: sl.worlds.IsingClique(outside=int), "outside must be"),
        (lambda: sl.worlds.IsingClique(outside=io.StringIO("x")), "outside must be"),
        (lambda: sl.worlds.MaskedGrammar(root=int), "root must be"),
        (lambda: sl.get("worlds", "pseudo-wiki")(topics=10**5), "topics must be at most 65536"),
        (lambda: sl.lenses.cancelling_residue(torch.ones(2, 2), 1, 10**9), "depth must be at most 67108864"),
        (lambda: sl.models.BalanceTransformer(types=2, depth=3, widths=((0.5, 0.6), (0.5, 0.5))), "widths must be"),
        (lambda: sl.models.BalanceTransformer(types=2, depth=3, widths=np.array([np.nan, 1.0])), "widths must be"),
        (lambda: sl.models.BalanceTransformer(types=2, depth=3, widths=torch.full((2, 2), 0.5)), "widths must be"),
        (lambda: sl.models.BalanceTransformer(types=2, depth=3, hidden=np.array(["a"])), "hidden must be"),
        (lambda: sl.models.BalanceTransformer(types=2, depth=3, hidden=io.StringIO("x")), "hidden must be"),
        (lambda: train_with(ema=print), "ema cannot be the function print"),
        (lambda: train_with(checkpoint="a" * 5000), "path must be .*: the names of files have at most 255"),
        (lambda: measure(sl.lenses.tail_error, chunk=1), "chunk must be at least 4 for 100000 targets, got 1"),
        (lambda: measure(sl.lenses.accuracy, examples=10**9), "chunk must be at least 244141 for 1000000000 examples"),
    ],
)
def test_what_junk_has_found_is_refused(call: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        call()


class Returning(torch.nn.Module):
    """A model of a user's that returns what a function makes of its logits."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.table, self.change = torch.nn.Embedding(5, 5), change

    def forward(self, tokens: Tensor) -> object:
        return self.change(self.table(tokens))


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda logits: (logits, None), "a tuple"),
        (lambda logits: {"logits": logits}, "a dict"),
        (lambda _: None, "a NoneType"),
        (lambda logits: logits[:, 1:], r"\(64, 7, 5\) for 8 positions"),
    ],
)
def test_a_model_that_does_not_return_logits_is_told_so(change: Any, got: str) -> None:
    world = sl.worlds.Dyck(length=8)
    wanted = r"needs a model that returns logits \(batch, time, vocabulary\), got "
    with pytest.raises(BadInput, match=f"train {wanted}{got}"):
        sl.learning.train(Returning(change), world, steps=1, rng=sl.rng(0), progress=False)
    if "positions" not in got:
        with pytest.raises(BadInput, match=f"accuracy {wanted}{got}"):
            sl.lenses.accuracy(Returning(change), world, examples=4, rng=sl.rng(0))
