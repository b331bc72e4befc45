# SPDX-License-Identifier: Apache-2.0
"""Fading efforts: smooth, never larger, and exactly zero at the end."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import example, given
from hypothesis import strategies as st

from eom_dynamics import StateError
from eom_dynamics.elastic import DriveCommand
from eom_dynamics.messages.joint_order import JointOrder
from eom_dynamics.messages.setpoint_to_command import EvaluatedCommand
from eom_dynamics.stream.watchdog import fade


@given(s=st.floats(0.0, 2.0), duration=st.floats(0.01, 10.0))
@example(s=3e-7, duration=1.0)  # where rounding gives more than 1
def test_it_is_the_documented_polynomial_with_its_derivatives(s: float, duration: float) -> None:
    t = sympy.Symbol("t")
    u = t / sympy.Float(duration, 40)
    w = 1 - 10 * u**3 + 15 * u**4 - 6 * u**5
    found = fade(s, duration)
    assert 0.0 <= found.w <= 1.0
    for k, value in enumerate(found):
        expected = float(w.diff(t, k).subs(t, sympy.Float(s, 40))) if s < duration else 0.0
        assert abs(value - expected) <= 1e-14 * 60 / duration**k


def test_faded_efforts_are_products_with_their_derivatives() -> None:
    """By SymPy, for efforts that are polynomials of time."""
    t = sympy.Symbol("t")
    tau, T, at = [2 + 3 * t - t**2, 1 - t**3], sympy.Rational(4, 5), sympy.Rational(3, 10)
    u = t / T
    w = 1 - 10 * u**3 + 15 * u**4 - 6 * u**5
    efforts = np.array([[float(x.diff(t, k).subs(t, at)) for x in tau] for k in range(3)])
    expected = np.array([[float((w * x).diff(t, k).subs(t, at)) for x in tau] for k in range(3)])
    motors = np.arange(8.0).reshape(4, 2)
    last = EvaluatedCommand(JointOrder(["a", "b"], []), np.zeros((5, 2)), (), efforts, motors)
    faded = fade(float(at), float(T)).of(last)
    np.testing.assert_allclose(faded.efforts, expected, rtol=1e-13)
    np.testing.assert_array_equal(faded.motors[:3], motors[:3])
    np.testing.assert_allclose(faded.motors[3], motors[3] * float(w.subs(t, at)), rtol=1e-13)
    np.testing.assert_array_equal(last.efforts, efforts)
    np.testing.assert_array_equal(fade(0.8, 0.8).of(last).efforts, 0.0)


def test_rates_that_overflow_are_refused() -> None:
    large = EvaluatedCommand(JointOrder(["a"], []), np.zeros((5, 1)), (), np.full((3, 1), 1e307), np.zeros((4, 1)))
    assert np.isfinite(fade(0.0, 0.1).of(large).efforts).all()
    with pytest.raises(StateError, match=r"^numbers too large: derivatives of fading efforts would be infinite$"):
        fade(0.05, 0.1).of(large)
    zero = np.zeros(1)
    sent = large._replace(efforts=np.zeros((3, 1)), sent=DriveCommand(zero, zero, zero, zero + 1e307, zero))
    with pytest.raises(StateError, match=r"^numbers too large: derivatives of fading efforts would be infinite$"):
        fade(0.05, 0.1).of(sent)
