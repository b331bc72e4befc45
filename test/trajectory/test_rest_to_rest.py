# SPDX-License-Identifier: Apache-2.0
"""Rest-to-rest motions against the polynomial by SymPy."""

import numpy as np
import sympy
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

from eom_dynamics import TrajectoryError
from eom_dynamics.trajectory import rest_to_rest, shortest_duration


def test_polynomial_agrees_with_sympy() -> None:
    t, c = sympy.Symbol("t"), sympy.symbols("c:10")
    p = sum(c[j] * t**j for j in range(10))
    conditions = [sympy.diff(p, t, k).subs(t, end) - int(end == 2 and k == 0) for k in range(5) for end in (0, 2)]
    p = p.subs(sympy.solve(conditions, c))
    times = np.linspace(0, 2, 41)
    motion = rest_to_rest([1.0, -1.0], [1.5, 2.0], 2.0, start_time=3.0)
    for k, actual in enumerate(motion.derivatives(3.0 + times)):
        shape = sympy.lambdify(t, sympy.diff(p, t, k) + 0 * t)(times)
        expected = (k == 0) * np.array([1.0, -1.0]) + np.outer(shape, [0.5, 3.0])
        np.testing.assert_allclose(actual, expected, atol=1e-11)


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.lists(st.floats(0.1, 100), min_size=4, max_size=4),
    st.integers(1, 15),
)
def test_shortest_duration_meets_all_limits_and_reaches_one(end: list[float], values: list[float], which: int) -> None:
    names = ("velocity", "acceleration", "jerk", "snap")
    limits = {name: value for i, (name, value) in enumerate(zip(names, values, strict=True)) if which >> i & 1}
    duration = shortest_duration([0.0, 0.0], end, **limits)
    if not np.any(np.abs(end) > 1e-9):
        return
    motion = rest_to_rest([0.0, 0.0], end, duration)
    peaks = [np.max(np.abs(x)) for x in motion.derivatives(duration * np.linspace(0, 1, 4001))]
    worst = max(peaks[1 + names.index(name)] / limit for name, limit in limits.items())
    assert 1 - 1e-5 < worst < 1 + 1e-12  # the peak may be between samples


test_bad_input_is_refused = refusals(
    TrajectoryError,
    (lambda: rest_to_rest([0.0], [1.0], 0.0), "duration"),
    (lambda: rest_to_rest([0.0], [1.0], np.nan), "duration"),
    (lambda: rest_to_rest([0.0], [1.0, 2.0], 1.0), "same joints"),
    (lambda: rest_to_rest([0.0], [np.inf], 1.0), "finite"),
    (lambda: rest_to_rest(0.0, 1.0, 1.0), r"\(n,\)"),
    (lambda: shortest_duration([0.0], [1.0]), "has no limit"),
    (lambda: shortest_duration([0.0], [1.0], velocity=0.0), "velocity must"),
    (lambda: shortest_duration([0.0], [1.0], jerk=[1.0, 2.0]), "jerk must"),
    (lambda: shortest_duration([0.0], [1.0], snap=np.nan), "snap"),
)
