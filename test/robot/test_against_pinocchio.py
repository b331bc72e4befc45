# SPDX-License-Identifier: Apache-2.0
"""Robots read from URDF against Pinocchio, which reads the same text: random trees, and robots in use."""

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from described_trees import random_tree
from differences import deviation, polynomial_motion
from example_robots import example_urdfs
from pinocchio_tree import PinocchioTree

from eom_dynamics import Robot, RobotDescriptionWarning, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.recursion import inverse_dynamics, link_tree

TOLERANCE = 1e-9

# Central differences of order 10 for the first and the second derivative, and the value at 0.
_FIRST = (5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260)
_SECOND = (5 / 3, -5 / 21, 5 / 126, -5 / 1008, 1 / 3150)


def rates(function: Callable[[float], Array], step: float) -> tuple[Array, Array, Array]:
    """A function of time at 0, with its first and second derivative; rounding error 1e-16 / step² of its size."""
    now, first, second = function(0.0), 0.0, 0.0
    for k, (odd, even) in enumerate(zip(_FIRST, _SECOND, strict=True), start=1):
        after, before = function(k * step), function(-k * step)
        first = first + odd * (after - before) / step
        second = second + even * (after - 2 * now + before) / step**2
    return now, np.asarray(first), np.asarray(second)


class Comparison:
    """A robot in one random state, and its tau, taud, taudd by Pinocchio.

    tau is by ``rnea``, its derivatives by differences of it along a motion; taud also by the derivatives of ``rnea`` if
    each joint has one variable.
    """

    def __init__(self, urdf: str, robot: Robot, locked: Mapping[str, float] | None = None) -> None:
        self.tree = PinocchioTree(urdf, robot, locked)
        rng = np.random.default_rng(robot.n)
        self.states = rng.uniform(-1, 1, (5, robot.n))
        self.wrenches = rng.uniform(-5, 5, (3, len(robot.tools), 6))
        motion, wrench = polynomial_motion(self.states), polynomial_motion(self.wrenches.reshape(3, -1))

        def effort(t: float) -> Array:
            return self.tree.effort(*motion(t)[:3], wrench(t)[0].reshape(-1, 6))

        # With more joints, the last body is faster, and its effort changes in a shorter time.
        self.efforts = rates(effort, 0.05 / (1 + 0.05 * robot.n))
        if self.tree.single:
            rate = self.tree.effort_rate(*self.states[:4], *self.wrenches[:2])
            assert deviation(self.efforts[1], rate) < TOLERANCE

    def deviations(self, robot: Robot) -> list[float]:
        rows = [w.ravel().tolist() for w in self.wrenches]
        ours = inverse_dynamics(link_tree(robot), self.states.tolist(), rows)
        return [deviation(a, b) for a, b in zip(ours, self.efforts, strict=True)]


@pytest.mark.parametrize("seeds", [range(k, k + 5) for k in range(0, 15, 5)], ids=lambda seeds: f"{seeds[0]} on")
def test_random_trees(seeds: range) -> None:
    """As URDF, and as parameters with joints in the same order."""
    for seed in seeds:
        described = random_tree(seed)
        robot = load_robot(described.urdf(), tools=described.tools)
        as_parameters = robot_from_parameters(_in_order(described.parameters(), robot))
        comparison = Comparison(described.urdf(), robot)
        assert max(comparison.deviations(robot) + comparison.deviations(as_parameters)) < TOLERANCE


def _in_order(parameters: dict, robot: Robot) -> dict:
    place = {frame.name: k for k, frame in enumerate(robot.frames)}
    return parameters | {"joint_names": sorted(parameters["joint_names"], key=lambda name: place[name])}


def _moving_joints(path: Path) -> list[ET.Element]:
    return [joint for joint in ET.parse(path).getroot().iter("joint") if joint.get("type", "fixed") != "fixed"]


# Half a differential.
_TALOS = {
    f"talos_{kind}": ["transmission talos_trans (line "]
    for kind in ("full_v2", "full_v2_box", "reduced", "reduced_box", "reduced_corrected")
}

# Start of each warning of a file, after the name of the file; other files have no warnings.
WARNINGS = {
    **_TALOS,
    "alex_psyonic_hands": [
        f"joint {side}_{finger}_q2: fixed at 0.723498 rad: its mimic leader '{finger}_q1' does not exist"
        for side in ("Left", "Right")
        for finger in ("index", "middle", "ring", "pinky")
    ],
    "anymal_b_simple_description": [
        f"<limit>: {name} is ignored: LF_HAA" for name in ("command_effort", "current", "gear_velocity")
    ],
    "pr2": [f"transmission {name}_trans (line " for name in ("r_wrist", "r_gripper", "l_wrist", "l_gripper")],
    "romeo": ["joint LHand: the mass matrix is singular, since no mass moves with LHand, RHand: "],
    "romeo_laas_small": [
        "line 328: link body: <inertial>: principal moments of inertia must not be negative",
        "line 260: link LElbowYaw_link: <inertial>: the largest principal moment of inertia must not exceed",
        "line 359: link LHipPitch_link: <inertial>: principal moments of inertia must not be negative",
        "line 431: link RHipPitch_link: <inertial>: principal moments of inertia must not be negative",
        "joint l_gripper_joint: the mass matrix is singular, since no mass moves with l_gripper_joint, r_gripper_joint",
    ],
    "romeo_small": [
        "line 548: link RShoulderYawLink: <inertial>: the largest principal moment of inertia must not exceed",
        "line 586: link RElbowYawLink: <inertial>: the largest principal moment of inertia must not exceed",
    ],
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=f"{path.parent.parent.name}/{path.stem}")
        for path in example_urdfs()
        if re.search(r'<joint\b[^>]*\btype="(?!fixed)', path.read_text(encoding="utf-8"))
    ],
)
def test_robots_in_use(path: Path) -> None:
    """Each loads by default, with these warnings and those of limits of zero, and no other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = load_robot(path)
    expected = WARNINGS.get(path.stem) or WARNINGS.get(path.parent.parent.name, [])
    joints = _moving_joints(path)
    limits = [limit for joint in joints for limit in joint.findall("limit")]
    zero = [x for x in caught if "0: commands that move the joint are refused" in str(x.message)]
    assert len(zero) == sum("0" in (f"{float(x.get(name, 1)):g}" for name in ("velocity", "effort")) for x in limits)
    caught = [x for x in caught if x not in zero]
    assert [warning.category for warning in caught] == [RobotDescriptionWarning] * len(expected)
    for warning, beginning in zip(caught, expected, strict=True):
        assert str(warning.message).startswith(f"{path}: {beginning}")
    names = {joint.name for joint in robot.joints}
    locked = {j.get("name"): float(j.find("mimic").get("offset")) for j in joints if j.get("name") not in names}
    comparison = Comparison(path.read_text(encoding="utf-8"), robot, locked)
    assert max(comparison.deviations(robot)) < TOLERANCE
