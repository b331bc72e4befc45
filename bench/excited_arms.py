# SPDX-License-Identifier: Apache-2.0
"""Arms that identification is measured on: their limits, a tool, the truth, and recordings of optimal excitations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from excited import ENCODER, TORQUE, efforts, pseudo_inertia, true_robot, with_pseudo_inertia

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Excitation, ExcitationOptions, Recording
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.trajectory import Fourier

ROBOTS = ("iiwa", "ur5e", "dual_arm", "sea_planar_2r")

RATE = 500.0
"""Of the recordings, Hz."""

PERIODS = 10
"""Of 10 s."""

TOOL_MASS, TOOL_PLACE, TOOL_RADIUS = 3.0, (0.1, 0.0, 0.1), 0.05
"""Tool at each tip: kg, m in the frame of the last body, radius of gyration, m."""

# Errors of the files: stiffness and rotor inertia, at most.
_SPREAD = 0.2

# Friction, viscous at the highest speed, and Coulomb: of the limit of effort, or of the largest effort where
# there is none; at least and at most. A gear of an arm has some hundredths.
_FRICTION = 0.02, 0.05

# Of the search for the motion: it gains little after these.
_CANDIDATES, _ITERATIONS = 10, 15

_TURN = np.pi / 180


def limits(robot: Robot) -> dict[str, dict[str, float]]:
    """Limits that the robots' files lack. Those of the iiwa 14: the manufacturer's data sheet; others are plausible."""
    if robot.name == "iiwa":
        position = _TURN * np.array([170, 120, 170, 120, 170, 120, 175])
        velocity = _TURN * np.array([85, 85, 100, 75, 130, 135, 135])
        effort = [320, 320, 176, 176, 110, 40, 40]
        return _each(
            robot, lower=-position, upper=position, velocity=velocity, acceleration=10, effort=effort, effort_rate=1500
        )
    if robot.name == "sea_planar_2r":
        return _each(robot, lower=-np.pi / 2, upper=np.pi / 2, velocity=4)
    if robot.name in ("ur5e", "dual_arm"):
        return _each(robot, acceleration=10, effort_rate=1500)
    return {}


def with_tools(robot: Robot) -> Robot:
    """The robot with a tool on each last body, whose weight loads the springs of the wrist."""
    parents = {joint.parent for joint in robot.joints}
    place = np.append(TOOL_PLACE, 1.0)
    tool = TOOL_MASS * (np.outer(place, place) + np.diag([TOOL_RADIUS**2] * 3 + [0.0]))
    joints = [
        joint if i in parents else with_pseudo_inertia(joint, pseudo_inertia(joint) + tool)
        for i, joint in enumerate(robot.joints)
    ]
    return replace(robot, joints=tuple(joints))


@dataclass(frozen=True, eq=False)
class Truth:
    """A robot as its file describes it, as it is, and a motion that is optimal for the former.

    Attributes:
        robot: as described, with limits.
        true: as it is.
        motion: the excitation.
        side: of the joints on which efforts are measured: joint, motor, or elastic for both.
    """

    robot: Robot
    true: Robot
    motion: Fourier
    side: str

    @property
    def inertias(self) -> Array:
        """True inertial parameters (10 B,)."""
        return np.concatenate([joint.inertial.parameters for joint in self.true.joints])

    @property
    def t(self) -> Array:
        """Times of the samples (N,), s."""
        return np.arange(self.motion.start, self.motion.end, 1 / RATE)


def arm(name: str, side: str) -> Truth:
    """An arm with other inertias, springs, rotors and friction than its file, the latter of joints or their motors."""
    robot, motion = _described(name)
    draw = np.random.default_rng(3)
    q, qd, qdd = motion.derivatives(np.linspace(motion.start, motion.end, 1000), 2)
    speeds = np.max(np.abs(qd), axis=0)
    range_of_effort = effort_noise(robot, efforts(robot, q, qd, qdd)) / TORQUE
    joints = list(true_robot(robot, "joint").joints)
    for i, effort, speed in zip(robot.independent, range_of_effort, speeds, strict=True):
        old = robot.joints[i]
        viscous, dry = effort * draw.uniform(*_FRICTION, 2) / [speed, 1.0]
        stiffer, heavier = 1 + draw.uniform(-_SPREAD, _SPREAD, 2)
        law = Friction(viscous, dry, dry, smoothing_velocity=old.actuator.friction.smoothing_velocity)
        on_link = side == "joint"
        joints[i] = replace(
            joints[i],
            damping=viscous if on_link else old.damping,
            friction=dry if on_link else old.friction,
            spring=old.spring.scaled(stiffer),
            rotor_inertia=old.rotor_inertia * heavier,
            actuator=old.actuator if on_link else replace(old.actuator, friction=law),
        )
    return Truth(robot, replace(robot, joints=tuple(joints)), motion, side)


def rigid_recording(truth: Truth, seed: int) -> Recording:
    """Positions and efforts with noise."""
    q = truth.motion.derivatives(truth.t, 0)[0]
    tau = _rigid_efforts(truth)
    draw = np.random.default_rng(seed)
    noise = effort_noise(truth.robot, tau) * draw.standard_normal(tau.shape)
    return Recording(truth.robot.joint_names, truth.t, q + ENCODER * draw.standard_normal(q.shape), tau + noise)


def elastic_recording(truth: Truth, seed: int) -> ArmRecording:
    """Both sides of the springs with noise; velocities of the links as drives compute them from positions."""
    exact = _elastic_signals(truth)
    draw = np.random.default_rng(seed)
    q, theta = (x + ENCODER * draw.standard_normal(x.shape) for x in (exact.q, exact.theta))
    tau, effort = (
        x + effort_noise(truth.robot, x) * draw.standard_normal(x.shape) for x in (exact.tau, exact.motor_effort)
    )
    return replace(exact, q=q, theta=theta, tau=tau, motor_effort=effort)


def effort_noise(robot: Robot, tau: Array) -> Array:
    """Standard deviations (n,): 0.5 % of the limits of effort, or of the largest effort where there is no limit."""
    limit = np.array([joint.limits.effort for joint in robot.independent_joints])
    return np.asarray(TORQUE * np.where(np.isfinite(limit), limit, np.max(np.abs(tau), axis=0)))


@cache
def _described(name: str) -> tuple[Robot, Fourier]:
    """A robot with limits and tools, and its optimal excitation."""
    options = ExcitationOptions(periods=PERIODS, limits=limits(load_robot(name)))
    task = Excitation(with_tools(load_robot(name)), options)
    return task.robot, task.optimize(candidates=_CANDIDATES, iterations=_ITERATIONS).trajectory


@lru_cache(maxsize=1)
def _rigid_efforts(truth: Truth) -> Array:
    return efforts(truth.true, *truth.motion.derivatives(truth.t, 2), truth.side)


@lru_cache(maxsize=1)
def _elastic_signals(truth: Truth) -> ArmRecording:
    states = truth.motion.derivatives(truth.t, 4)
    command = ElasticArm(truth.true).feedforward(*states)
    return ArmRecording(truth.t, states[0], states[1], command.tau, command.motor_position, command.motor_effort)


def _each(robot: Robot, **values: Any) -> dict[str, dict[str, float]]:
    """Limits of all joints: numbers, or lists with one for each."""
    shaped = {name: np.broadcast_to(x, robot.n) for name, x in values.items()}
    return {joint: {name: float(x[k]) for name, x in shaped.items()} for k, joint in enumerate(robot.joint_names)}
