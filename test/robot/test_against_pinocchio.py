# SPDX-License-Identifier: Apache-2.0
"""Robots read from URDF against Pinocchio, which reads the same text: random trees, and the robots people use."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from described_trees import random_tree
from differences import deviation, polynomial_motion
from numpy.typing import NDArray

from eom_dynamics import Robot, RobotDescriptionWarning, equations_of_motion, load_robot, robot_from_parameters
from eom_dynamics.recursion import inverse_dynamics, link_tree

pytest.importorskip("pinocchio")

from pinocchio_tree import PinocchioTree

Array = NDArray[np.float64]

TOLERANCE = 1e-9

# Central differences of order 10 for the first and the second derivative, and the value at 0.
_FIRST = (5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260)
_SECOND = (5 / 3, -5 / 21, 5 / 126, -5 / 1008, 1 / 3150)


def rates(function: Callable[[float], Array], step: float) -> tuple[Array, Array, Array]:
    """A function of time at 0, with its first and second derivative, in which rounding leaves 1e-16 / step² of it."""
    now, first, second = function(0.0), 0.0, 0.0
    for k, (odd, even) in enumerate(zip(_FIRST, _SECOND, strict=True), start=1):
        after, before = function(k * step), function(-k * step)
        first = first + odd * (after - before) / step
        second = second + even * (after - 2 * now + before) / step**2
    return now, np.asarray(first), np.asarray(second)


def check_efforts(urdf: str, robot: Robot, other: Robot | None = None) -> None:
    """Everything at once in one state: each costs a model, and there are many."""
    tree = PinocchioTree(urdf, robot)
    rng = np.random.default_rng(robot.n)
    states = rng.uniform(-1, 1, (5, robot.n))
    W = rng.uniform(-5, 5, (3, len(robot.tools), 6))
    q, qd, qdd, qddd, qdddd = states
    motion, wrench = polynomial_motion(states), polynomial_motion(W.reshape(3, -1))

    def effort(t: float) -> Array:
        return tree.effort(*motion(t)[:3], wrench(t)[0].reshape(-1, 6))

    # The more joints, the faster the last body, and what its weight changes by.
    expected = rates(effort, 0.05 / (1 + 0.05 * robot.n))
    if tree.single:
        assert deviation(expected[1], tree.effort_rate(q, qd, qdd, qddd, W[0], W[1])) < TOLERANCE

    gravity = tree.effort(q, 0 * q, 0 * q)
    for robot_as_read in filter(None, (robot, other)):
        shaped = [w.reshape(robot_as_read.wrench_shape) for w in W]
        eq = equations_of_motion(robot_as_read, q, qd, qdd, qddd, wrench=shaped)
        assert deviation(eq.M[0], tree.mass_matrix(q)) < TOLERANCE
        assert deviation(eq.gravity[0], gravity) < TOLERANCE
        # What moves along and about one axis alone has no Coriolis force at all.
        assert deviation(eq.C[0] @ qd, tree.effort(q, qd, 0 * q) - gravity, floor=1e-3 * np.max(gravity)) < TOLERANCE
        for ours, theirs in zip(eq.efforts(qdddd), expected, strict=True):
            assert deviation(ours, theirs) < TOLERANCE
        rows = [w.ravel().tolist() for w in shaped]
        recursive = inverse_dynamics(link_tree(robot_as_read), states.tolist(), rows)
        for ours, theirs in zip(recursive, expected, strict=True):
            assert deviation(ours, theirs) < TOLERANCE


@pytest.mark.parametrize("seeds", [range(k, k + 20) for k in range(0, 200, 20)], ids=lambda seeds: f"{seeds[0]} on")
def test_random_trees(seeds: range) -> None:
    """URDF read here, URDF read by Pinocchio, and the same tree as parameters, whose joints come in the same order."""
    for seed in seeds:
        described = random_tree(seed)
        urdf = described.urdf()
        robot = load_robot(urdf, tools=described.tools)
        as_parameters = robot_from_parameters(_in_order(described.parameters(), robot))
        check_efforts(urdf, robot, as_parameters)


def _in_order(parameters: dict, robot: Robot) -> dict:
    """With joints in the order of the robot: depth-first, where parameters may have any."""
    place = {frame.name: k for k, frame in enumerate(robot.frames)}
    return parameters | {"joint_names": sorted(parameters["joint_names"], key=lambda name: place[name])}


def _example_urdfs() -> list[Path]:
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())) for file in files if file.name.endswith(".urdf"))


# Arms, hands and humanoids on their base, and whatever else has joints: all of the package but drones and one xacro
# file, called .urdf, that includes another.
NOT_ROBOTS = {"ur3.urdf", "quadrotor_base.urdf", "iris_simple.urdf"}

REFUSED = {"alex_psyonic_hands.urdf": "there is no joint 'index_q1'"}
"""Those that are broken, and what is wrong with them."""


@pytest.mark.parametrize("path", [p for p in _example_urdfs() if p.name not in NOT_ROBOTS], ids=lambda p: p.stem)
def test_robots_that_people_use(path: Path) -> None:
    urdf = path.read_text(encoding="utf-8")
    if path.name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[path.name]):
            load_robot(path, unphysical="warn")
        return
    with warnings.catch_warnings():
        # A third of them have inertias that no body can have; Pinocchio computes with them all the same.
        warnings.simplefilter("ignore", RobotDescriptionWarning)
        robot = load_robot(path, unphysical="warn")
    check_efforts(urdf, robot)
