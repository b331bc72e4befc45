# SPDX-License-Identifier: Apache-2.0
"""Limits of an excitation: ratios against the check of trajectories, spheres against the closed form, and gradients."""

from typing import Any

import numpy as np
import pytest
from differences import derivative
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.identification import Excitation, ExcitationOptions
from eom_dynamics.identification.excitation.limits import SHARPNESS, MotionLimits, Spheres, smooth_maximum, with_limits
from eom_dynamics.kinematics.frames import body_poses
from eom_dynamics.trajectory import Samples, check

RANGES = {name: {"lower": -1.0, "upper": 2.0, "velocity": 3.0} for name in ("joint_1", "joint_2")}


def arm(name: str = "sea_planar_2r", limits: Any = RANGES) -> eom.ElasticArm:
    return eom.ElasticArm(with_limits(eom.load_robot(name), limits))


def states(n: int = 2, samples: int = 12, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(5, samples, n))


@pytest.mark.parametrize(("name", "limits"), [("sea_planar_2r", RANGES), ("panda", {}), ("dual_arm", {})])
def test_ratios_are_those_of_the_check(name: str, limits: Any) -> None:
    of = arm(name, limits)
    at = states(of.robot.n)
    found = MotionLimits(of, 0.5)
    ratios = dict(zip(found.names, np.max(np.abs(found.ratios(at)), axis=0), strict=True))
    verdict = check(of, Samples(np.arange(at.shape[1], dtype=float), *at))
    limited = [peak for peak in verdict.peaks if np.isfinite(peak.limit)]
    assert len(limited) == len(found.names)
    for peak in limited:
        assert ratios[peak.quantity, peak.name] == pytest.approx(2 * peak.ratio, rel=1e-9)


def test_partials_agree_with_differences() -> None:
    of = MotionLimits(arm(), 0.9)
    at = 0.3 * states(samples=4, seed=1)
    partials = of.partials(at)
    for seed in range(3):
        direction = states(samples=4, seed=10 + seed)
        slope = derivative(lambda h, d=direction: of.ratios(at + h * d), step=1e-4)
        found = np.einsum("cokj,okj->kc", partials, direction)
        # Friction changes within 0.02 rad/s, which the differences resolve to 1e-6.
        np.testing.assert_allclose(found, slope, rtol=0, atol=1e-5 * np.max(np.abs(slope)))


@given(st.integers(1, 200), st.integers(0, 50))
def test_smooth_maximum_is_a_tight_upper_bound(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(count, 3))
    found, _ = smooth_maximum(values)
    largest = np.max(np.abs(values), axis=0)
    excess = found - largest
    assert np.all(excess >= -1e-12) and np.all(excess <= np.log(2 * count) / SHARPNESS + 1e-12)


def test_motion_that_springs_cannot_realise_exceeds_limits() -> None:
    of = MotionLimits(arm("vsa_planar_2r"), 0.9)
    assert np.max(np.abs(of.ratios(1e4 * states()))) > 1


def test_mimic_joints_count() -> None:
    """A joint that turns three times as far as its leader, with the same limits, leaves a third of them."""
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<joint name="{0}" type="revolute"><parent link="base"/><child link="{0}"/><axis xyz="0 0 1"/>{1}</joint>'
    first = '<limit lower="-3" upper="3" velocity="3" effort="9"/>'
    second = '<mimic joint="a" multiplier="3" offset="1"/><limit lower="-3" upper="4" velocity="3" effort="9"/>'
    links = "".join(f'<link name="{name}">{body}</link>' for name in "ab")
    joints = joint.format("a", first) + joint.format("b", second)
    text = f'<robot name="gripper"><link name="base"/>{links}{joints}</robot>'
    of = MotionLimits(eom.ElasticArm(eom.load_robot(text)), 1.0)
    np.testing.assert_allclose([*of.middle, *of.half, *of.largest[0]], [(-4 / 3 + 1) / 2, (1 + 4 / 3) / 2, 1.0])


def test_speed_limit_of_the_motor_stands_for_velocity() -> None:
    of = MotionLimits(arm(limits={name: {"lower": -1.0, "upper": 1.0} for name in RANGES}), 0.5)
    np.testing.assert_allclose(of.velocity, 0.5 * 500.0 / 100.0)


# On the base, and on the second link of a planar arm of two links, whose first is 0.5 m long.
SPHERES = {"base": [[0.0, 0.0, 0.0, 0.2]], "joint_2": [[0.2, 0.0, 0.0, 0.05], [0.4, 0.0, 0.0, 0.05]]}
WIDE = {"joint_1": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
WIDE["joint_2"] = {"lower": -3.1, "upper": 3.1, "velocity": 3.0}


def nearest(q: Any) -> Any:
    """Distance of the spheres' surfaces: |l1 + c exp(i q2)| less the radii."""
    return np.min([np.abs(0.5 + c * np.exp(1j * q[:, 1])) for c in (0.2, 0.4)], axis=0) - 0.25


def test_distances() -> None:
    spheres, q = Spheres(eom.load_robot("planar_2r"), SPHERES, 0.03), np.random.default_rng(0).uniform(-3, 3, (50, 2))
    assert spheres.pairs == ("base/joint_2",) and not spheres.always
    np.testing.assert_allclose(0.28 / spheres.ratios(q)[:, 0] - 0.25, nearest(q), atol=1e-12)
    meeting = Spheres(eom.load_robot("planar_2r"), {"base": [[0, 0, 0, 1.0]], "joint_2": [[0.2, 0, 0, 0.1]]})
    assert meeting.always == ("base/joint_2",) and meeting.pairs == ()


def test_of_a_tree_by_poses_of_its_bodies() -> None:
    robot, draw = eom.load_robot("dual_arm"), np.random.default_rng(1)
    given = {name: [[*draw.normal(size=3) / 10, 0.01]] for name in ("left_wrist", "right_wrist", "torso")}
    spheres, q = Spheres(robot, given), draw.uniform(-1, 1, (20, robot.n))
    poses = dict(zip((joint.name for joint in robot.joints), body_poses(robot, q), strict=True))
    center = {name: poses[name] @ [*rows[0][:3], 1.0] for name, rows in given.items()}
    for k, pair in enumerate(spheres.pairs):
        one, other = pair.split("/")
        distance = np.linalg.norm((center[one] - center[other])[:, :3], axis=1)
        np.testing.assert_allclose(spheres.ratios(q)[:, k], 0.02 / distance, rtol=1e-12)
    direction = draw.normal(size=q.shape)
    slope = derivative(lambda h: spheres.ratios(q + h * direction), step=1e-3)
    found = np.einsum("ckn,kn->kc", spheres.partials(q), direction)
    np.testing.assert_allclose(found, slope, atol=1e-8 * np.max(np.abs(slope)))


def test_optimal_motion_keeps_clear() -> None:
    options = ExcitationOptions(period=4.0, harmonics=5, limits=WIDE, spheres=SPHERES, clearance=0.05)
    task = Excitation(eom.load_robot("sea_planar_2r"), options)
    with_spheres = task.optimize(candidates=5, iterations=40)
    t = np.linspace(0, 4.0, 4001)
    assert np.min(nearest(with_spheres.trajectory.derivatives(t, 0)[0])) >= 0.05 - 1e-6
    assert task.cost(with_spheres.information) < task.cost(with_spheres.start_information)


SEA = "sea_planar_2r"


test_wrong_limits = refusals(
    TrajectoryError,
    (SEA, {"knee": {"lower": 0.0}}, "unknown joint 'knee'; .* has joint_1, joint_2"),
    (SEA, {"joint_1": {"lower": 1.0, "upper": 1.0}}, "joint_1: lower 1 must be less than upper 1"),
    (SEA, {"joint_1": {"velocity": 0.0}}, "joint_1: limit velocity must be positive, is 0"),
    (SEA, {"joint_1": {"effort": -2.0}}, "joint_1: limit effort must be positive, is -2"),
    (SEA, {"joint_2": {"upper": np.nan}}, "joint_2: limit upper"),
    (SEA, {"joint_2": {"speed": 1.0}}, "joint_2: no limit is named 'speed'; known are lower, upper, velocity"),
    ("iiwa", {}, "^iiwa: excite needs limits: iiwa_joint_1, .* or by --lower, --upper, --velocity$"),
    call=lambda name, limits: MotionLimits(arm(name, limits), 0.9),
)


test_wrong_spheres = refusals(
    TrajectoryError,
    ({"hand": [[0, 0, 0, 1]]}, "unknown frame 'hand'; planar_2r has joint_1"),
    ({"base": [[0, 0, 0]]}, "spheres of 'base' must be rows x, y, z, radius"),
    ({"base": [[0, 0, 0, 0.0]]}, "positive radius"),
    ({"base": "many"}, "spheres of 'base'"),
    ({"base": []}, "spheres of 'base'"),
    call=lambda spheres: Spheres(eom.load_robot("planar_2r"), spheres),
)
