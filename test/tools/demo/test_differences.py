# SPDX-License-Identifier: Apache-2.0
"""Numerical differentiation: exact for polynomials, of the order that it says, and honest about gaps."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics.tools.demo.differences import REACH, differentiate


@pytest.mark.parametrize("order", [6, 8])
@pytest.mark.parametrize("derivative", [1, 2])
def test_polynomials_up_to_the_order_are_met(derivative: int, order: int) -> None:
    polynomial = np.polynomial.Polynomial(np.arange(1.0, order + 2))
    t = np.linspace(-0.5, 0.5, 21)
    found = differentiate(polynomial(t)[:, np.newaxis], t[1] - t[0], derivative, order)[:, 0]
    np.testing.assert_allclose(found[REACH:-REACH], polynomial.deriv(derivative)(t)[REACH:-REACH], rtol=1e-9)


@pytest.mark.parametrize("order", [6, 8])
@pytest.mark.parametrize("derivative", [1, 2])
def test_half_the_step_is_two_to_the_order_better(derivative: int, order: int) -> None:
    errors = []
    for step in (0.2, 0.1):
        t = step * np.arange(-REACH, REACH + 1)
        found = differentiate(np.exp(t)[:, np.newaxis], step, derivative, order)[REACH, 0]
        errors.append(abs(found - 1))
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.1)


@pytest.mark.parametrize("derivative", [1, 2])
def test_a_gap_takes_its_neighbours_with_it_and_no_others(derivative: int) -> None:
    samples = np.ones((30, 2))
    samples[15, 1] = np.nan
    found = differentiate(samples, 0.1, derivative)
    assert np.isfinite(found[REACH:-REACH, 0]).all()
    assert np.isnan(found[15 - REACH : 15 + REACH + 1, 1]).sum() >= 2 * REACH
    assert np.isfinite(found[15 + REACH + 1 : -REACH, 1]).all()
    assert np.isnan(found[:REACH]).all() and np.isnan(found[-REACH:]).all()


def test_too_few_samples_give_nothing() -> None:
    assert np.isnan(differentiate(np.ones((2 * REACH, 3)), 0.1, 1)).all()
