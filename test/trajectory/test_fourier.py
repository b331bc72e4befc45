# SPDX-License-Identifier: Apache-2.0
"""Cosine and excitation trajectories: against SymPy, the paper's example, and at rest at their ends."""

import numpy as np
import sympy
from differences import derivative, deviation
from refusals import refusals

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Cosine, Fourier, paper_wrench

TIMES = np.linspace(0.0, 5.0, 41)


def test_derivatives_of_cosines_agree_with_sympy() -> None:
    amplitude, frequency, phase = [-1.3, 0.7], [1.7, 3.1], [0.0, 0.4]
    motion = Cosine(amplitude, frequency, phase)
    t = sympy.Symbol("t")
    for i in range(2):
        x = amplitude[i] * sympy.cos(frequency[i] * t + phase[i])
        for k, values in enumerate(motion.derivatives(TIMES, order=6)):
            expected = sympy.lambdify(t, sympy.diff(x, t, k))(TIMES)
            np.testing.assert_allclose(values[:, i], expected, rtol=0, atol=1e-11)  # 1e-14 of the largest, 1000


def test_wrench_of_the_paper() -> None:
    t = 1.7
    W, Wd, Wdd = paper_wrench().derivatives(t, order=2)
    np.testing.assert_allclose(W, np.full(6, 10 * np.sin(np.pi * t)), atol=1e-13)
    np.testing.assert_allclose(Wd, np.full(6, 10 * np.pi * np.cos(np.pi * t)), atol=1e-12)
    np.testing.assert_allclose(Wdd, np.full(6, -10 * np.pi**2 * np.sin(np.pi * t)), atol=1e-12)


RNG = np.random.default_rng(0)
A, B, Q0 = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3)


def test_derivatives_and_ramps() -> None:
    """Velocities are sums of cosines and sines of multiples of the frequency, by ``A`` and ``B``."""
    motion, plain = Fourier(0.5, A, B, Q0, periods=2, ramp=1), Fourier(0.5, A, B, Q0)
    assert motion.end == 8.0 and motion.n == 3
    times, w = np.linspace(0.0, 1.99, 31), np.pi * np.arange(1, 6)
    q, qd = plain.derivatives(times, order=1)
    waves = np.sin(np.multiply.outer(times, w)), np.cos(np.multiply.outer(times, w))
    np.testing.assert_allclose(qd, waves[1] @ A.T + waves[0] @ B.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q, Q0 + waves[0] @ (A / w).T - waves[1] @ (B / w).T, rtol=0, atol=1e-12)
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


test_errors = refusals(
    TrajectoryError,
    ((0.0, A, B, Q0), {}, "frequency"),
    ((1.0, A, B[:2], Q0), {}, r"\(n, L\)"),
    ((1.0, A, B, Q0[:2]), {}, "offset"),
    ((1.0, A * np.nan, B, Q0), {}, "finite"),
    ((1.0, "a", B, Q0), {}, "numbers"),
    ((1.0, A, B, Q0), {"periods": 0}, "periods"),
    ((1.0, A, B, Q0), {"ramp": -1}, "ramp"),
    ((1.0, A, B, Q0), {"ramp": 0.5}, "ramp"),
    call=lambda arguments, options: Fourier(*arguments, **options),
)
