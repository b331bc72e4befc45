# SPDX-License-Identifier: Apache-2.0
"""Roots of increasing functions, steep and flat, one by one and in arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics import elementary
from eom_dynamics.jet import Jet
from eom_dynamics.jet_functions import exponential_less_one, hyperbolic_tangent

Function = Callable[..., Jet]

INCREASING: dict[str, Function] = {
    "flat at zero": lambda x, rest: x * x * x + x * rest,
    "flatter at zero": lambda x, rest: x * x * x * x * x + x * rest,
    "steep step": lambda x, rest: hyperbolic_tangent(x * (1 / rest)) + x * rest,
    "steep growth": lambda x, rest: exponential_less_one(x * (4.5 / (rest + 0.1))) + x * rest,
    "flat decay": lambda x, rest: -exponential_less_one(x * -9.0) + x * rest,
}


@pytest.mark.parametrize("function", INCREASING.values(), ids=INCREASING)
@given(
    at=st.lists(st.integers(-3000, 3000).map(lambda k: k / 1000), min_size=4, max_size=4),
    rest=st.sampled_from([1e-9, 1e-5, 1e-2, 1.0]),
    room=st.tuples(st.floats(0, 5), st.floats(0, 5)),
    start=st.floats(-10, 10),
)
def test_roots_of_steep_and_flat_functions(
    function: Function, at: list[float], rest: float, room: tuple[float, float], start: float
) -> None:
    """Within bounds, to rounding of the function or of the root, whatever the first value.

    A root at zero is approached from bounds beyond it to 1e-15, not to a relative error.
    """
    x = np.array(at)
    target = np.asarray(function(Jet([x]), rest)[0])
    found = elementary.root(function, target, (x - room[0], x + room[1]), start + 0 * x, (rest,))
    value, slope, _ = function(Jet([found, 1 + 0 * x, 0 * x]), rest)
    # The terms of the functions are at most one where the value is smaller.
    rounding = 1e-15 * (np.abs(target) + np.abs(found * slope) + (np.abs(target) > 0.5)) + 1e-15 * slope * (target == 0)
    assert np.all(np.abs(value - target) <= rounding)
    assert np.all((found >= x - room[0] - rounding / slope) & (found <= x + room[1] + rounding / slope))
    for k in range(4):
        own = elementary.root(function, float(target[k]), (at[k] - room[0], at[k] + room[1]), start, (rest,))
        assert own == pytest.approx(found[k], rel=1e-15, abs=1e-15), "those that have ended do not move"


def test_a_root_far_down_an_exponential() -> None:
    """Halley's method goes there by steps of 2/45."""
    found = elementary.root(lambda x: exponential_less_one(x * 45.0), 1e-3, (0.0, 6.0), 6.0)
    assert found == pytest.approx(np.log1p(1e-3) / 45, rel=1e-15)


@pytest.mark.parametrize(
    ("target", "bounds", "expected"),
    [(0.0, (0.0, 0.0), 0.0), (2.0, (1.0, 3.0), 1.0), (2.0, (0.0, 1.0), 1.0), (10.0, (2.0, 2.0), 2.0)],
)
def test_a_root_that_is_a_bound(target: float, bounds: tuple[float, float], expected: float) -> None:
    assert elementary.root(lambda x: x * x * x + x, target, bounds, 7.0) == expected


@given(st.floats(-350, 350))
def test_functions_without_cancellation(x: float) -> None:
    sinh, cosh = elementary.sinh_cosh(x)
    np.testing.assert_allclose([sinh, cosh, elementary.asinh(sinh)], [np.sinh(x), np.cosh(x), x], rtol=4e-15)
