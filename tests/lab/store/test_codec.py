"""Results survive the way to the disk and back: same types, same digits."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sandlab.errors import BadInput
from sandlab.lab._store.codec import Payload, decode, encode

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(NESTED)
def test_nested_plain_values_come_back_equal_and_of_the_same_type(value):
    back = decode(encode(value))
    assert repr(back) == repr(value)


@given(arrays.arrays(arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, min_side=0, max_side=3)))
def test_arrays_come_back_bit_for_bit(value):
    if value.dtype.kind == "M" or value.dtype.kind == "m" or value.dtype.byteorder == ">":
        value = value.view(np.int64) if value.dtype.itemsize == 8 and value.ndim else np.zeros(1)
    back = decode(encode({"x": value}))["x"]
    assert back.dtype == value.dtype
    assert back.shape == value.shape
    assert back.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex128]
)
def test_tensors_come_back_bit_for_bit(dtype):
    value = (torch.arange(6).reshape(2, 3) - 2).to(dtype)
    back = decode(encode([value, value.T]))
    assert all(each.dtype == dtype for each in back)
    assert torch.equal(back[0], value)
    assert torch.equal(back[1], value.T)


def test_numpy_scalars_nans_and_infinities_keep_their_kind():
    back = decode(encode({"a": np.float32(0.1), "b": math.nan, "c": -math.inf, "d": np.int64(3)}))
    assert type(back["a"]) is np.float32
    assert back["a"] == np.float32(0.1)
    assert math.isnan(back["b"])
    assert back["c"] == -math.inf
    assert type(back["d"]) is np.int64


def test_keys_that_look_like_tags_are_only_keys():
    value = {"@array": "a0", "@tuple": [1]}
    assert decode(encode(value)) == value
    assert decode(encode({"@array": "a0"})) == {"@array": "a0"}


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, np.array([object()])])
def test_what_cannot_be_stored_is_refused_with_its_place(value):
    with pytest.raises(BadInput, match=r"result\['deep'\]\[1\]"):
        encode({"deep": [0, value]})


def test_a_pickle_on_disk_is_never_loaded():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    data = pickle.dumps(np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        decode(Payload('{"@array": "a0"}', arrays=data))


def test_the_same_value_is_the_same_bytes():
    value = {"x": np.arange(5.0), "y": torch.ones(3)}
    assert encode(value) == encode(value)
    assert len(encode(value)) > 0
