# SPDX-License-Identifier: Apache-2.0
"""Spatial momentum and its time derivatives: sums over bodies, differences, Pinocchio."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import FIXED, fixed_case
from differences import derivative, deviation, polynomial_motion
from floating_motion import floating_motion
from textbook import body_poses, body_twists

from eom_dynamics import FloatingBase, RobotDescriptionError, StateError, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.equations import floating_spatial_momentum, spatial_momentum
from eom_dynamics.robot import Inertial

BASE = Inertial.about_center(3.0, np.array([0.1, -0.2, 0.3]), np.diag([0.3, 0.4, 0.5]))
ABOUT = ("origin", "center_of_mass")


def momentum_of_bodies(parameters: Any, q: Array, qd: Array) -> tuple[Array, Array]:
    """Sum of R I w + c x m v and of m v, about the origin and about the common center of mass."""
    angular, linear, moment, mass = np.zeros(3), np.zeros(3), np.zeros(3), 0.0
    names = parameters["joint_names"]
    for name, C, V in zip(names, body_poses(parameters, q), body_twists(parameters, q, qd), strict=True):
        joint, R = parameters["joints"][name], C[:3, :3]
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        inertia, center = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.array(joint["center_of_mass"])
        p = joint["mass"] * R @ (V[3:] + np.cross(V[:3], center))
        c = R @ center + C[:3, 3]
        angular += R @ inertia @ V[:3] + np.cross(c, p)
        linear += p
        moment, mass = moment + joint["mass"] * c, mass + joint["mass"]
    return np.r_[angular, linear], np.r_[angular - np.cross(moment / mass, linear), linear]


@pytest.mark.parametrize("name", FIXED)
def test_sum_over_bodies_and_derivatives_to_order_three(name: str) -> None:
    """Errors of differences: 1e-16 / 0.01 relative to terms that cancel."""
    case = fixed_case(name, 4)
    motion = polynomial_motion(case.motion)
    for own, about in zip(momentum_of_bodies(case.parameters, *case.motion[:2]), ABOUT, strict=True):
        found = spatial_momentum(case.robot, *case.motion, about=about)
        assert len(found) == 4 and all(h.shape == (6,) for h in found)
        assert deviation(found[0], own) < 1e-12
        for k in range(3):

            def below(t: float, k: int = k, about: str = about) -> Array:
                return spatial_momentum(case.robot, *motion(t), about=about)[k]

            assert deviation(found[k + 1], derivative(below)) < 1e-11
    rates = derivative(lambda t: np.array(momentum_of_bodies(case.parameters, *motion(t)[:2])))
    for rate, about in zip(rates, ABOUT, strict=True):
        assert deviation(spatial_momentum(case.robot, *case.motion, about=about)[1], rate) < 1e-9  # twice differenced


@pytest.mark.parametrize("name", ["iiwa", "dual_arm", "leg"])
def test_derivatives_on_a_floating_base(name: str) -> None:
    robot = replace(load_robot(name), base=BASE)
    motion = floating_motion(np.random.default_rng(4).uniform(-0.5, 0.5, (6, 6 + robot.n)))
    pose, q, rates = motion(0.0)
    for about in ABOUT:
        found = floating_spatial_momentum(robot, pose, q, *rates[:4], about=about)
        for k in range(3):

            def below(t: float, k: int = k, about: str = about) -> Array:
                C, x, nu = motion(t)
                return floating_spatial_momentum(robot, C, x, *nu[:4], about=about)[k]

            assert deviation(found[k + 1], derivative(below)) < 1e-10
    compiled = FloatingBase(robot, backend="numpy")
    assert deviation(found[0], compiled.centroidal_momentum(pose, q, rates[0])) < 1e-13
    in_base = compiled.momentum(q, rates[0])[:6]
    own = np.linalg.inv(lie.Ad(pose)).T @ in_base
    assert deviation(floating_spatial_momentum(robot, pose, q, rates[0])[0], own) < 1e-13


def test_time_variation_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    from pinocchio_model import PinocchioFloating, pinocchio_model

    robot, rng = replace(load_robot("iiwa"), base=BASE), np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-1, 1, (3, robot.n))
    model = pinocchio_model(robot)
    data = model.createData()
    pin.computeCentroidalMomentumTimeVariation(model, data, q, qd, qdd)
    found = spatial_momentum(robot, q, qd, qdd, about="center_of_mass")
    for x, y in zip(found, (data.hg, data.dhg), strict=True):
        assert deviation(x, np.r_[y.angular, y.linear]) < 1e-13

    pose, (nu, nud) = lie.exp(rng.uniform(-1, 1, 6)), rng.uniform(-1, 1, (2, 6 + robot.n))
    floating = PinocchioFloating(pinocchio_model(robot, floating=True), robot)
    state = floating.configuration(pose, q), floating.rates(nu), floating.rates(nud)
    pin.computeCentroidalMomentumTimeVariation(floating.model, floating.data, *state)
    found = floating_spatial_momentum(robot, pose, q, nu, nud, about="center_of_mass")
    for x, y in zip(found, (floating.data.hg, floating.data.dhg), strict=True):
        assert deviation(x, np.r_[y.angular, y.linear]) < 1e-13


def test_batches_are_their_states() -> None:
    robot = replace(load_robot("planar_2r"), base=BASE)
    rng = np.random.default_rng(5)
    motion, pose, nu = rng.normal(size=(3, 4, 2)), lie.exp(rng.normal(size=(4, 6))), rng.normal(size=(2, 4, 8))
    for about in ABOUT:
        many = spatial_momentum(robot, *motion, about=about), floating_spatial_momentum(robot, pose, motion[0], *nu)
        for i in range(4):
            one = spatial_momentum(robot, *motion[:, i], about=about)
            on_base = floating_spatial_momentum(robot, pose[i], motion[0, i], *nu[:, i])
            for batch, single in zip(many, (one, on_base), strict=True):
                np.testing.assert_array_equal([h[i] for h in batch], single)


def test_momentum_about_the_centre_of_mass_needs_mass() -> None:
    robot = load_robot("planar_2r")
    empty = tuple(replace(joint, mass=0.0, inertia_about_origin=np.zeros((3, 3))) for joint in robot.joints)
    weightless = replace(robot, joints=empty)
    assert not np.any(spatial_momentum(weightless, [0.1, 0.2], [1.0, 2.0]))
    with pytest.raises(RobotDescriptionError, match=r"planar_2r.*center"):
        spatial_momentum(weightless, [0.1, 0.2], [1.0, 2.0], about="center_of_mass")
    with pytest.raises(StateError, match=r"origin.*center_of_mass.*'base'"):
        spatial_momentum(robot, [0.1, 0.2], [1.0, 2.0], about="base")
