# SPDX-License-Identifier: Apache-2.0
"""Comparison of feedforwards under motor PD, with and without model errors, and arms whose simulation ends early."""

from dataclasses import replace

import numpy as np
import pytest
from differences import deviation
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

from eom_dynamics import Dynamics, load_robot
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.exceptions import StateError
from eom_dynamics.simulation import compare_feedforward
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.trajectory import Cosine, paper_motion

NONE, RIGID, FLATNESS = range(3)
TIMES = np.linspace(0.0, 0.3, 151)


def test_flatness_is_exact_with_an_exact_model() -> None:
    comparison = compare_feedforward(load_robot("planar_2r"), paper_motion(2), TIMES, [0.0, 20.0, 70.0])
    assert np.all(comparison.peak[:, FLATNESS] < 1e-9)
    assert np.all(comparison.peak[:, [NONE, RIGID]] > 5e-4)
    assert comparison.energy_imbalance < 1e-8


def test_flatness_with_model_errors_is_better_than_rigid_feedforward_at_stiff_motors() -> None:
    errors = {"stiffness_error": 0.1, "mass_error": 0.05, "tolerance": 1e-8}
    comparison = compare_feedforward(load_robot("planar_2r"), paper_motion(2), TIMES, [10.0, 70.0], **errors)
    soft, stiff = comparison.rms
    assert stiff[RIGID] > 10 * stiff[FLATNESS]
    assert soft[RIGID] < 2 * soft[FLATNESS]
    assert np.all((stiff < soft)[[NONE, FLATNESS]])
    assert comparison.energy_imbalance < 1e-8


def test_errors_are_link_positions_less_the_trajectory() -> None:
    """An arm held without feedforward sags by its weight over the stiffness of PD and spring in series."""
    robot = load_robot("pendulum")
    still = Cosine(np.array([0.5]), 0.0)
    comparison = compare_feedforward(robot, still, np.linspace(0.0, 6.0, 601), [30.0], tolerance=1e-6)
    kp = robot.rotor_inertia[0] * 30.0**2
    # Without damping of the spring the pendulum swings about its position of rest.
    rest = 0.5 + comparison.error[-400:, 0, NONE].mean()
    holding = Dynamics(robot).effort([rest], [0.0], [0.0])
    assert rest - 0.5 == pytest.approx(float(-holding[0] * (1 / kp + 1 / robot.stiffness[0])), rel=0.1)
    assert deviation(comparison.rms, np.sqrt(np.mean(comparison.error**2, axis=(0, 3)))) == 0
    assert deviation(comparison.peak, np.abs(comparison.error).max(axis=(0, 3))) == 0


def test_perturbed_robot() -> None:
    robot = with_springs(load_robot("iiwa"), *EVERY_KIND.values())
    other = perturbed(robot, stiffness=0.1, mass=-0.05)
    for before, after in zip(robot.joints, other.joints, strict=True):
        assert after.mass == pytest.approx(0.95 * before.mass)
        assert deviation(after.inertia_about_origin, 0.95 * before.inertia_about_origin) < 1e-15
        assert after.stiffness == pytest.approx(1.1 * before.stiffness)
    coupled = replace(load_robot("planar_2r"), coupled_stiffness=((0, 1), CoupledSpring([[5.0, 1.0], [1.0, 3.0]])))
    assert perturbed(coupled, stiffness=0.1).coupled_stiffness[1].matrix[0, 1] == pytest.approx(1.1)  # type: ignore[index]


def test_an_arm_with_a_slack_spring_ends_alone() -> None:
    robot = load_robot("vsa_planar_2r")
    still = Cosine(np.zeros(2), 0.0)
    comparison = compare_feedforward(robot, still, np.linspace(0.0, 0.5, 251), [0.0, 70.0], tolerance=1e-8)
    (end, *others) = comparison.ends
    assert others == [None] * 5
    assert end is not None and "goes slack" in end.reason and "joint_2" in end.reason
    # The link is in equilibrium: s'' = -(30 s + 200 s²)/0.1 from s = (120 - 60)/(2 400) rad.
    options = {"events": lambda _, y: y[0], "rtol": 1e-10, "atol": 1e-12}
    slack = solve_ivp(lambda _, y: [y[1], -(30 * y[0] + 200 * y[0] ** 2) / 0.1], (0.0, 0.5), [0.075, 0.0], **options)
    assert end.t == pytest.approx(slack.t_events[0][0], rel=1e-5)
    known = comparison.t < end.t
    assert np.all(np.isfinite(comparison.error[known])) and np.all(np.isnan(comparison.error[~known, 0, NONE]))
    assert np.isnan(comparison.rms[0, NONE]) and np.isnan(comparison.peak[0, NONE])
    assert np.isfinite(comparison.rms).sum() == 5 and comparison.energy_imbalance < 1e-8


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_a_motion_out_of_bounds_is_an_error() -> None:
    robot = load_robot("planar_2r")
    with pytest.raises(StateError, match="numbers too large: effort_acceleration of joint 'joint_1'"):
        compare_feedforward(robot, Cosine(np.full(2, 1e200), 1.0), TIMES, [10.0])
