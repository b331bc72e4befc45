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


def test_of_known_singular_values() -> None:
    draw = np.random.default_rng(0)
    U, V = (np.linalg.qr(draw.normal(size=(k, 3)))[0] for k in (40, 3))
    found = Information.of(U @ np.diag([8.0, 4.0, 2.0]) @ V.T, 16)
    assert found.log_det == pytest.approx(2 * np.log(2 * 1 * 0.5), abs=1e-12)
    assert found.condition == pytest.approx(4.0, rel=1e-12)
    assert found.smallest == pytest.approx(0.5, rel=1e-12)


def test_scaled_condition_does_not_depend_on_units(model: InformationModel) -> None:
    W = model.matrix(states())
    one, other = Information.of(W, 30), Information.of(W * np.geomspace(1, 1e3, W.shape[1]), 30)
    assert one.scaled_condition == pytest.approx(other.scaled_condition, rel=1e-9)
    assert abs(np.log(one.condition / other.condition)) > 0.1


def test_predicts_the_covariance_of_least_squares(model: InformationModel) -> None:
    """The determinant of the covariance of estimates from noisy efforts, K samples."""
    draw, W, K = np.random.default_rng(4), model.matrix(states(1)), 30
    estimates = np.linalg.lstsq(W, draw.normal(size=(len(W), 20_000)), rcond=None)[0]
    measured = np.linalg.slogdet(np.cov(estimates))[1]
    predicted = -(model.information(states(1)).log_det + W.shape[1] * np.log(K))
    # Of 20,000 estimates, a variance has a standard deviation of 1 %: five of P of them.
    assert abs(measured - predicted) < 5 * 0.01 * np.sqrt(W.shape[1])


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_gradient_agrees_with_differences(model: InformationModel, weight: float) -> None:
    at = states(2, 8)
    _, gradient = model.cost(at, weight)
    draw = np.random.default_rng(5)
    for _ in range(4):
        direction = draw.normal(size=at.shape)
        slope = derivative(lambda h, d=direction: model.cost(at + h * d, weight)[0], step=1e-3)
        # Differences of the regressor are accurate to 1e-9.
        assert np.sum(gradient * direction) == pytest.approx(float(slope), rel=1e-7)


def test_weight_adds_at_least_the_condition_number(model: InformationModel) -> None:
    at = states(3)
    added = model.cost(at, 1.0)[0] - model.cost(at, 0.0)[0]
    condition = np.log(model.information(at).condition)
    assert condition <= added <= condition + 2 * np.log(len(model.columns)) / 8


def test_motion_that_tells_nothing(model: InformationModel) -> None:
    value, gradient = model.cost(np.zeros((3, 5, 2)), 0.0)
    assert value == np.inf and not np.any(gradient)


def test_dependent_columns_are_left_out() -> None:
    """The rotor of the first joint of a planar arm adds to the inertia of its bodies; that of the second does not."""
    robot = eom.load_robot("planar_2r")
    plain, rotors = (InformationModel(Regressor(robot, terms), NOISE) for terms in ((), ("rotor_inertia",)))
    assert len(rotors.regressor.names) == len(plain.columns) + 2
    assert len(rotors.columns) == len(plain.columns) + 1
