# SPDX-License-Identifier: Apache-2.0
"""Cosine trajectories: derivatives against SymPy, and the paper's example."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from eom_dynamics.trajectory import Cosine, paper_motion, paper_wrench

TIMES = np.linspace(0.0, 5.0, 41)


def test_derivatives_agree_with_sympy() -> None:
    amplitude, frequency, phase = [-1.3, 0.7], [1.7, 3.1], [0.0, 0.4]
    motion = Cosine(amplitude, frequency, phase)
    t = sympy.Symbol("t")
    for i in range(2):
        x = amplitude[i] * sympy.cos(frequency[i] * t + phase[i])
        for k, derivative in enumerate(motion.derivatives(TIMES, order=6)):
            expected = sympy.lambdify(t, sympy.diff(x, t, k))(TIMES)
            np.testing.assert_allclose(derivative[:, i], expected, rtol=0, atol=1e-11)  # 1e-14 of the largest, 1000


def test_shapes() -> None:
    motion = paper_motion(3)
    assert [x.shape for x in motion.derivatives(0.5)] == [(3,)] * 5
    assert [x.shape for x in motion.derivatives(TIMES, order=2)] == [(41, 3)] * 3
    np.testing.assert_array_equal(motion.derivatives(TIMES)[4][7], motion.derivatives(TIMES[7])[4])


def test_start_of_the_papers_motion() -> None:
    q, qd, qdd, *_ = paper_motion().derivatives(0.0)
    assert q[0] == -1.2943753211777664 and q[6] == 0.4217605991935227
    assert not np.any(qd)
    np.testing.assert_allclose(qdd[6], -0.4217605991935227 * 5.927533308659986**2)


def test_paper_motion_of_more_joints() -> None:
    q = paper_motion(9).derivatives(1.0)[0]
    np.testing.assert_array_equal(q[7:], q[:2])


@pytest.mark.parametrize("t", [0.0, 0.25, 1.7])
def test_wrench_of_the_paper(t: float) -> None:
    W, Wd, Wdd = paper_wrench().derivatives(t, order=2)
    np.testing.assert_allclose(W, np.full(6, 10 * np.sin(np.pi * t)), atol=1e-13)
    np.testing.assert_allclose(Wd, np.full(6, 10 * np.pi * np.cos(np.pi * t)), atol=1e-12)
    np.testing.assert_allclose(Wdd, np.full(6, -10 * np.pi**2 * np.sin(np.pi * t)), atol=1e-12)


def test_wrench_of_several_tools() -> None:
    one, two = (paper_wrench(tools).derivatives(0.3, order=2) for tools in (1, 2))
    np.testing.assert_array_equal(two, np.concatenate([one, one], axis=1))
