"""The checker of shapes finds what it is there to find."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float, Int
from shapes import ShapeError, check_call, check_fields
from torch import Tensor

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.attention import causal_mask

PACKAGE = Path(sl.__file__).parent


@check_call
def first(a: Float[Tensor, "n m"], b: Float[Tensor, "m k"], *, last: bool = False) -> Float[Tensor, "n m"]:
    return b if last else a


@check_call
def refusing(a: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    if a.ndim != 2:
        raise BadInput("a must be a table")
    return a


@check_call
def halves(x: Int[np.ndarray, " n"] | list[int]) -> tuple[Int[np.ndarray, " n"], dict[str, Float[np.ndarray, " n"]]]:
    x = np.asarray(x)
    return x, {"half": x[:3] / 2}


@check_fields
@dataclass(frozen=True)
class Pair:
    a: Float[Tensor, " n"]
    b: Bool[Tensor, " n"]


def test_axes_of_one_name_have_one_size() -> None:
    for _ in range(2):  # the second time the shapes are known
        assert first(torch.ones(2, 3), b=torch.ones(3, 4)).shape == (2, 3)
        with pytest.raises(ShapeError, match=r"b must be .*m k.*got torch.float32 \(4, 4\)"):
            first(torch.ones(2, 3), torch.ones(4, 4))


def test_kinds_axes_and_results_are_checked() -> None:
    with pytest.raises(ShapeError, match="a must be"):
        first(torch.ones(2, 3, dtype=torch.long), torch.ones(3, 4))
    with pytest.raises(ShapeError, match="a must be"):
        first(torch.ones(3), torch.ones(3, 4))
    with pytest.raises(ShapeError, match="a must be"):
        first([[1.0]], torch.ones(1, 4))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="the result must be"):
        first(torch.ones(2, 3), torch.ones(3, 4), last=True)


def test_a_functions_own_refusal_comes_first() -> None:
    with pytest.raises(BadInput, match="a must be a table") as refusal:
        refusing(torch.ones(3))
    assert "refusing: a must be" in refusal.value.__notes__[0]


def test_arrays_inside_tuples_and_dictionaries_are_checked() -> None:
    assert len(halves([1, 2, 3])) == 2
    halves(np.arange(3))
    halves(np.arange(3, dtype=np.uint8))
    halves(np.array([]))  # nothing: of no kind
    with pytest.raises(ShapeError, match="the result must be"):
        halves(np.arange(4))
    with pytest.raises(ShapeError, match="x must be"):
        halves(np.ones((2, 2), dtype=int))


def test_fields_are_checked() -> None:
    Pair(torch.ones(3), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ShapeError, match="b must be"):
        Pair(torch.ones(3), torch.ones(4, dtype=torch.bool))


def test_the_package_is_checked_in_this_very_run() -> None:
    assert causal_mask(torch.zeros(2, 3, 3)).shape == (3, 3)
    with pytest.raises(ShapeError, match="scores must be"):
        causal_mask(torch.zeros(2, 3, 3, dtype=torch.long))


def test_every_shape_of_the_package_can_be_read() -> None:
    kinds = {"Bool": Bool, "Float": Float, "Int": Int}
    count = 0
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in kinds:
                assert isinstance(node.slice, ast.Tuple), f"{file}:{node.lineno}"
                axes = node.slice.elts[1]
                assert isinstance(axes, ast.Constant), f"{file}:{node.lineno}"
                kinds[node.value.id][Tensor, axes.value]
                count += 1
    assert count > 1500
