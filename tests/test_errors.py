import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandlab.errors import BadInput, choice, flag, integer, nearest, number


@given(st.integers(), st.integers(-5, 5), st.integers(6, 12))
def test_integer_accepts_exactly_the_closed_range(value: int, low: int, high: int) -> None:
    if value in range(low, high + 1):
        assert integer("k", value, low, high) == value
    else:
        with pytest.raises(BadInput, match=rf"k must be a whole number between {low} and {high}, got {value}"):
            integer("k", value, low, high)


@pytest.mark.parametrize("value", [True, 1.0, "3", None, [1]])
def test_integer_refuses_what_is_not_a_whole_number(value: object) -> None:
    with pytest.raises(BadInput, match="order must be a whole number of at least 1"):
        integer("order", value, low=1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", True])
def test_number_refuses_what_is_not_a_finite_real(value: object) -> None:
    with pytest.raises(BadInput, match="rate must be a number"):
        number("rate", value)


def test_the_hint_stands_at_the_end_of_the_sentence() -> None:
    with pytest.raises(BadInput) as refusal:
        integer("order", 0, low=1, hint="an order-0 chain is a categorical")
    sentence = "order must be a whole number of at least 1, got 0: an order-0 chain is a categorical"
    assert str(refusal.value) == sentence


def test_a_near_miss_among_choices_is_suggested() -> None:
    with pytest.raises(BadInput, match="did you mean 'rotary'"):
        choice("positions", "rotatory", ("none", "rotary"))
    assert nearest("zzzz", ["alpha"]) == ""


def test_validators_bear_any_object() -> None:
    """D26."""
    import numpy as np

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    odd = [10**400, -(10**5000), np.zeros(3), Silent(), "x" * 10_000, object(), [], {}, None, float("nan"), b"", 1j]
    for value in odd:
        for check in (
            lambda v: number("x", v, low=0.0, high=1.0),
            lambda v: integer("x", v, low=0, high=10),
            lambda v: choice("x", v, ("a", "b", 3)),
            lambda v: flag("x", v),
        ):
            with pytest.raises(BadInput) as told:
                check(value)
            assert len(str(told.value)) < 600
    with pytest.raises(BadInput, match="True or False, got 'false'"):
        flag("tied", "false")
    assert flag("tied", True) is True
