# SPDX-License-Identifier: Apache-2.0
"""Information of a motion: against its definition, against differences, and by what least squares does with noise."""

import numpy as np
import pytest
from differences import derivative

import eom_dynamics as eom
from eom_dynamics.identification import Regressor
from eom_dynamics.identification.excitation.information import Information, InformationModel

NOISE = np.array([2.0, 0.5])


@pytest.fixture(scope="module")
def model() -> InformationModel:
    return InformationModel(Regressor(eom.load_robot("planar_2r"), ("viscous",)), NOISE)


def states(seed: int = 0, samples: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, samples, 2))


def test_of_known_singular_values_and_in_other_units() -> None:
    draw = np.random.default_rng(0)
    U, V = (np.linalg.qr(draw.normal(size=(k, 3)))[0] for k in (40, 3))
    found = Information.of(U @ np.diag([8.0, 4.0, 2.0]) @ V.T, 16)
    assert found.log_det == pytest.approx(2 * np.log(2 * 1 * 0.5), abs=1e-12)
    assert found.condition == pytest.approx(4.0, rel=1e-12)
    assert found.smallest == pytest.approx(0.5, rel=1e-12)
    W = draw.normal(size=(40, 3))
    one, other = Information.of(W, 30), Information.of(W * [1, 30, 1e3], 30)
    assert one.scaled_condition == pytest.approx(other.scaled_condition, rel=1e-9)
    assert other.condition > 100 * one.condition


def test_predicts_the_covariance_of_least_squares(model: InformationModel) -> None:
    """The determinant of the covariance of estimates from noisy efforts, K samples."""
    draw, W, K = np.random.default_rng(4), model.matrix(states(1)), 30
    estimates = np.linalg.lstsq(W, draw.normal(size=(len(W), 20_000)), rcond=None)[0]
    measured = np.linalg.slogdet(np.cov(estimates))[1]
    predicted = -(model.information(states(1)).log_det + W.shape[1] * np.log(K))
    # Of 20,000 estimates, a variance has a standard deviation of 1 %: five of P of them.
    assert abs(measured - predicted) < 5 * 0.01 * np.sqrt(W.shape[1])


def test_cost_and_its_gradient(model: InformationModel) -> None:
    """Of determinant and condition number, against differences."""
    at, costs = states(2, 8), []
    for weight in (0.0, 1.0):
        cost, gradient = model.cost(at, weight)
        direction = np.random.default_rng(5).normal(size=at.shape)
        slope = derivative(lambda h, d=direction, w=weight: model.cost(at + h * d, w)[0], step=1e-3)
        # Differences of the regressor are accurate to 1e-9.
        assert np.sum(gradient * direction) == pytest.approx(float(slope), rel=1e-7)
        costs.append(cost)
    condition = np.log(model.information(at).condition)
    assert condition <= costs[1] - costs[0] <= condition + 2 * np.log(len(model.columns)) / 8


def test_motion_that_tells_nothing(model: InformationModel) -> None:
    value, gradient = model.cost(np.zeros((3, 5, 2)), 0.0)
    assert value == np.inf and not np.any(gradient)


def test_dependent_columns_are_left_out() -> None:
    """The rotor of the first joint of a planar arm adds to the inertia of its bodies; that of the second does not."""
    robot = eom.load_robot("planar_2r")
    plain, rotors = (InformationModel(Regressor(robot, terms), NOISE) for terms in ((), ("rotor_inertia",)))
    assert len(rotors.regressor.names) == len(plain.columns) + 2
    assert len(rotors.columns) == len(plain.columns) + 1
