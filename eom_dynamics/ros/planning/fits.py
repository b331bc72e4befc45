# SPDX-License-Identifier: Apache-2.0
"""Motions of trajectories, fitted and checked in the worker process of the dynamics node."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 -- now, rather than with the first trajectory
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from ...arrays import STATE_NAMES, Array
from ...control.joint_order import JointOrder
from ...control.trajectories import check_waypoints, hold_others, read_spline, read_times, rest_at_the_end
from ...elastic import ElasticArm
from ...elastic.limit_violations import question_of_speed
from ...exceptions import StateError, TrajectoryError
from ...robot import Robot
from ...trajectory import Spline, Verdict
from ...trajectory.feedforward import CHECK_RATE, checked
from ..ignored_joints import remove_ignored
from ..interfaces import SplineTrajectory, srv
from ..loaded_arm import loaded_arm
from .jobs import PlannedMotion, PlanningJob
from .trajectories import Start, fit_motion, retime

_Constants = srv.ComputeTrajectoryFeedforward.Request
_FIT_OPTIONS = _Constants()

# Fraction of limits that goals use: the reserve is for stops and pauses on the path.
_USED = 0.95
_RESERVED = ("acceleration", "jerk", "effort", "effort_rate")
_RESERVED_OF_MOTORS = ("torque_limit", "speed_limit", "current_limit", "voltage_limit")

# Extra duration of a slower motion, because its own samples differ.
_MARGIN = 1e-3

_MOST_ATTEMPTS = 3


def plan(job: PlanningJob) -> PlannedMotion:
    """Fit and check the motion of a trajectory; EomDynamicsError if it is refused."""
    arm, reserved = (loaded_arm(x, job.payload) for x in _arms(job.robot))
    try:
        message = deserialize_message(job.message, SplineTrajectory if job.is_spline else JointTrajectory)
    except Exception as error:
        raise StateError(f"the message cannot be read: {error}") from None
    names = arm.robot.joint_names
    if not job.is_spline:
        remove_ignored(message, names, job.ignored_joints)
    held = np.array([name not in (message.joint_names or names) for name in names])
    if job.is_spline:
        # Unknown names are refused before positions are needed.
        holds = held.any() and {*message.joint_names} <= {*names}
        motion = read_spline(message, names, _positions(job)[held] if holds else None)
    else:
        motion = _fit(arm, reserved, message, job)
    motion, notes = _within_limits(arm, reserved, job, motion)
    return PlannedMotion(Spline(motion.t, motion.states), held, notes)  # without intermediate results


@lru_cache(maxsize=1)
def _arms(robot: bytes) -> tuple[ElasticArm, ElasticArm]:
    """The arm, and the arm with the limits of goals."""
    arms = ElasticArm(loaded := pickle.loads(robot)), ElasticArm(_with_reserve(loaded))
    for arm in arms:
        arm.feedforward(*np.zeros((len(STATE_NAMES), 2, arm.robot.n)))  # compile batches
    return arms


def _with_reserve(robot: Robot) -> Robot:
    """The robot with lower limits, except positions, velocities and root mean squares of efforts."""

    def reduced(part: Any, names: tuple[str, ...]) -> Any:
        return replace(part, **{name: _USED * getattr(part, name) for name in names})

    joints = []
    for joint in robot.joints:
        motor = reduced(joint.actuator.motor, _RESERVED_OF_MOTORS)
        limits, actuator = reduced(joint.limits, _RESERVED), replace(joint.actuator, motor=motor)
        joints.append(replace(joint, limits=limits, actuator=actuator))
    return replace(robot, joints=tuple(joints))


def _positions(job: PlanningJob) -> Array:
    if job.positions is None:
        raise StateError("no position of the joints without a name is known: publish joint_states, or name all joints")
    return job.positions


def _fit(arm: ElasticArm, reserved: ElasticArm, message: Any, job: PlanningJob) -> Spline:
    """Motion through the points of a JointTrajectory."""
    names = arm.robot.joint_names
    check_waypoints(len(message.points), arm.robot.n)  # before the work of the fit
    hold_others(message, names, lambda others: _positions(job)[[names.index(name) for name in others]])
    rest_at_the_end(message)
    start = None
    if job.begin is not None:
        start = Start(job.begin, dict(zip(names, _positions(job), strict=True)) if job.is_at_rest else {})
        message.joint_names = message.joint_names or list(names)
    order = JointOrder.of(arm, list(message.joint_names))
    motion = fit_motion(message, read_times(message), order, _FIT_OPTIONS, start, arm.robot.continuous)
    if motion.end > motion.start and job.trajectory_limits == _Constants.FASTEST:
        fastest = partial(retime, motion=motion, times=motion.t, timing=_Constants.FASTEST, waypoints=motion.states[0])
        try:
            motion = fastest(reserved)[1]
        except TrajectoryError:  # gravity alone may need the reserve
            motion = fastest(arm)[1]
    return motion


def _check(arm: ElasticArm, motion: Spline) -> Verdict:
    return checked(arm, motion, rate=CHECK_RATE, most=_Constants.MAX_SAMPLES)


def _slowed_down(arm: ElasticArm, motion: Spline) -> Spline | None:
    """The motion, slower if limits require it; None if that does not help."""
    for _ in range(_MOST_ATTEMPTS):
        verdict = _check(arm, motion)
        if verdict.ok:
            return motion
        if (scaling := verdict.time_scaling) is None:
            return None
        motion = motion.stretched(scaling * (1.0 + _MARGIN))
    return motion


def _within_limits(
    arm: ElasticArm, reserved: ElasticArm, job: PlanningJob, motion: Spline
) -> tuple[Spline, tuple[str, ...]]:
    """The motion, slower if the policy is ``slow_down``, and notes; TrajectoryError if limits refuse it."""
    policies = {job.limits} if job.is_spline else {job.limits, job.trajectory_limits}
    duration, notes = motion.end - motion.start, []
    if "slow_down" in policies:  # gravity alone may need the reserve
        motion = _slowed_down(reserved, motion) or _slowed_down(arm, motion) or motion
    verdict = _check(arm, motion)
    if (slower := motion.end - motion.start) > duration:
        notes.append(f"trajectory slowed down from {duration:.4g} s to {slower:.4g} s, to meet limits")
    if not verdict.ok and policies != {"ignore"}:
        reason = f"exceeds limits: {verdict}{question_of_speed(verdict.exceeded)}"
        if verdict.in_degrees or policies & {"refuse", "slow_down", "fastest"}:
            raise TrajectoryError(verdict.in_degrees or reason)
        notes.append(f"trajectory {reason}")
    return motion, tuple(notes)
