# SPDX-License-Identifier: Apache-2.0
"""Solvers of inverse kinematics of other libraries, for serial arms of revolute joints.

They are compared where they are installed: pip install roboticstoolbox-python pin-pink daqp EAIK
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin

from eom_dynamics import Robot, lie
from eom_dynamics.arrays import Array
from eom_dynamics.kinematics import body_poses
from eom_dynamics.tools.benchmark.pinocchio_model import pinocchio_model

# Of a solution: m and rad.
TOLERANCE = 1e-10

# Steps of one attempt and attempts, for solvers that are iterated here.
_STEPS, _ATTEMPTS = 100, 20


class RoboticsToolbox:
    """``ik_LM``, the Levenberg-Marquardt method in C++, with its own restarts."""

    package, method, most = "roboticstoolbox-python", "`ik_LM`", 10_000

    def __init__(self, robot: Robot, limits: Array) -> None:
        import roboticstoolbox as rtb

        poses, end = _axis_frames(robot)
        steps = [poses[0], *(lie.inverse(a) @ b for a, b in pairwise(poses))]
        ets = rtb.ETS()
        for step, (lower, upper) in zip(steps, limits, strict=True):
            ets = ets * rtb.ET.SE3(step) * rtb.ET.Rz(qlim=np.array([lower, upper]))
        self._ets = ets * rtb.ET.SE3(lie.inverse(poses[-1]) @ end)

    def __call__(self, target: Array, start: Array) -> Array | None:
        """Solution of a target, if there is one."""
        # Half the sum of squared errors.
        found = self._ets.ik_LM(target, q0=start, ilimit=_STEPS, slimit=100, tol=0.5 * TOLERANCE**2)
        return np.asarray(found[0], dtype=float)


class Pink:
    """Pink, a quadratic program for each step, iterated to convergence with random restarts."""

    package, method, most = "pin-pink", "with daqp, iterated", 500

    def __init__(self, robot: Robot, limits: Array) -> None:
        import pink

        self._pink, self._model = pink, pinocchio_model(robot)
        self._model.lowerPositionLimit, self._model.upperPositionLimit = limits.T
        self._model.velocityLimit = np.full(robot.n, 1e3)
        self._data, self._limits = self._model.createData(), limits
        self._task = pink.FrameTask(robot.tools[0].name, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
        self._random = np.random.default_rng(3)

    def __call__(self, target: Array, start: Array) -> Array | None:
        """Solution of a target, if there is one."""
        self._task.set_target(pin.SE3(target))
        limits = [self._pink.limits.ConfigurationLimit(self._model)]
        for attempt in range(_ATTEMPTS):
            q = self._random.uniform(*self._limits.T) if attempt else start
            configuration = self._pink.Configuration(self._model, self._data, q)
            for _ in range(_STEPS):
                error = self._task.compute_error(configuration)
                if np.max(np.abs(error)) < 0.5 * TOLERANCE:
                    found: Array = configuration.q
                    return found
                try:
                    v = self._pink.solve_ik(
                        configuration, [self._task], 1.0, solver="daqp", limits=limits, safety_break=False
                    )
                except Exception:  # a program without solution, or one that is not solved
                    break
                configuration.integrate_inplace(v, 1.0)
        return None


class Eaik:
    """EAIK, closed forms by subproblems, where it knows the family of the arm."""

    package, method, most = "EAIK", "closed form", 10_000

    def __init__(self, robot: Robot, limits: Array) -> None:
        from eaik.IK_Homogeneous import HomogeneousRobot

        if robot.n != 6:
            raise ValueError("not for seven joints")
        poses, end = _axis_frames(robot)
        self._robot, self._limits = HomogeneousRobot(np.array([*poses, end])), limits
        if not self._robot.hasKnownDecomposition():
            raise ValueError("unknown family")

    def __call__(self, target: Array, start: Array) -> Array | None:
        """The solution within limits that comes closest to the target, if there is one."""
        found = np.asarray(self._robot.IK(target).Q, dtype=float).reshape(-1, 6)
        inside = [q for q in found if np.all((q >= self._limits[:, 0]) & (q <= self._limits[:, 1]))]
        errors = [np.max(np.abs(self._robot.fwdKin(q) - target)) for q in inside]
        return inside[int(np.argmin(errors))] if inside else None


PEERS: tuple[Callable[[Robot, Array], Any], ...] = (RoboticsToolbox, Pink, Eaik)


def residual(robot: Robot) -> Callable[[Array, Array], float]:
    """Function of joint variables and target: the largest error, m or rad, by Pinocchio."""
    model = pinocchio_model(robot)
    data, frame = model.createData(), model.getFrameId(robot.tools[0].name)

    def error(q: Array, target: Array) -> float:
        pin.forwardKinematics(model, data, q)
        there = pin.updateFramePlacement(model, data, frame)
        away = pin.log6(there.actInv(pin.SE3(target)))
        return float(max(np.linalg.norm(away.angular), np.linalg.norm(away.linear)))

    return error


def peers(robot: Robot, limits: Array) -> list[Any]:
    """The solvers that are installed and take this arm."""
    found = []
    for kind in PEERS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(kind(robot, limits))
        except (ImportError, ValueError):
            continue
    return found


def _axis_frames(robot: Robot) -> tuple[list[Array], Array]:
    """Poses of frames with z along the axes, at q = 0 in the base frame, and that of the tool."""
    frames = []
    bodies = body_poses(robot, np.zeros(robot.n))
    for joint, body in zip(robot.joints, bodies, strict=True):
        axis, moment = joint.screw[:3], joint.screw[3:]
        x = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
        x = x / np.linalg.norm(x)
        frames.append(body @ lie.pose(np.column_stack([x, np.cross(axis, x), axis]), np.cross(axis, moment)))
    tool = robot.tools[0]
    return frames, bodies[tool.joint] @ tool.pose
