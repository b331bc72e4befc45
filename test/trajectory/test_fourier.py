# SPDX-License-Identifier: Apache-2.0
"""Excitation trajectories: against SymPy, and at rest at their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from differences import derivative, deviation

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Fourier

RNG = np.random.default_rng(0)
A, B, Q0 = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3)


def test_derivatives_agree_with_sympy() -> None:
    t = sympy.Symbol("t")
    motion = Fourier(0.2, A, B, Q0)
    times = np.linspace(0, 5, 31)
    for i in range(3):
        w = 2 * sympy.pi / 5
        q = Q0[i] + sum(
            A[i, j] / (w * (j + 1)) * sympy.sin(w * (j + 1) * t) - B[i, j] / (w * (j + 1)) * sympy.cos(w * (j + 1) * t)
            for j in range(5)
        )
        for k, actual in enumerate(motion.derivatives(times, order=5)):
            expected = sympy.lambdify(t, sympy.diff(q, t, k))(times)
            np.testing.assert_allclose(actual[:, i], expected, rtol=0, atol=1e-11)


def test_ramps() -> None:
    motion, plain = Fourier(0.5, A, B, Q0, periods=2, ramp=1), Fourier(0.5, A, B, Q0)
    assert motion.end == 8.0 and motion.n == 3
    for t in (0.0, 8.0, -1.0, 9.0):
        q, *rates = motion.derivatives(t)
        np.testing.assert_array_equal(q, Q0)
        assert np.max(np.abs(rates)) < 1e-12
    inside = np.linspace(2.001, 5.999, 50)
    for a, b in zip(motion.derivatives(inside), plain.derivatives(inside % 2.0), strict=True):
        assert deviation(a, b) < 1e-12
    for at in (0.7, 1.9, 6.3, 7.5):
        for k in range(4):
            slope = derivative(lambda h, at=at, k=k: motion.derivatives(at + h)[k])
            assert deviation(slope, motion.derivatives(at)[k + 1]) < 1e-8


def test_shapes() -> None:
    motion = Fourier(1.0, A, B, Q0, ramp=1)
    assert [x.shape for x in motion.derivatives(0.5)] == [(3,)] * 5
    assert [x.shape for x in motion.derivatives([0.5, 1.5], order=1)] == [(2, 3)] * 2


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.0, A, B, Q0), {}, "frequency"),
        ((1.0, A, B[:2], Q0), {}, r"\(n, L\)"),
        ((1.0, A, B, Q0[:2]), {}, "offset"),
        ((1.0, A * np.nan, B, Q0), {}, "finite"),
        ((1.0, "a", B, Q0), {}, "numbers"),
        ((1.0, A, B, Q0), {"periods": 0}, "periods"),
        ((1.0, A, B, Q0), {"ramp": -1}, "ramp"),
        ((1.0, A, B, Q0), {"ramp": 0.5}, "ramp"),
    ],
)
def test_errors(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrajectoryError, match=message):
        Fourier(*arguments, **options)
