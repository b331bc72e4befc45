# SPDX-License-Identifier: Apache-2.0
"""Prediction errors of spring and motor efforts, before and after an identification.

    springs:  tau - f(delta, deltad),        motors:  u - (B thetadd + load(tau, v) + friction(v)),

filtered as for the fit of the motors, by the springs and motors of the file: without offsets, which it does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..robot import Joint, Robot
from .both_sides import ArmRecording
from .elastic_arm import Elasticity, measured, with_spring_efforts
from .residuals import EffortErrors
from .sampling import LowPass, rate_of


@dataclass(frozen=True, eq=False)
class ElasticScore:
    """Prediction errors on both sides of the springs.

    Attributes:
        springs, motors: of their efforts; NaN where these were not recorded or are not identified.
    """

    springs: EffortErrors
    motors: EffortErrors


def elastic_score(robot: Robot, elasticity: Elasticity, recordings: Sequence[ArmRecording]) -> ElasticScore:
    """Score identified springs and motors beside those of the file, each motion by itself."""
    known = [with_spring_efforts(robot, elasticity, x) for x in recordings]
    joints = zip(robot.independent_joints, elasticity.applied_to(robot).independent_joints, strict=True)
    figures = {side: np.full((3, robot.n), np.nan) for side in ("springs", "motors")}
    for k, (before, after) in enumerate(joints):
        parts = [_residuals(before, after, k, *pair, elasticity) for pair in zip(recordings, known, strict=True)]
        for side, rows in figures.items():
            own = [part[side] for part in parts if side in part]
            if own:
                given, identified, efforts = (np.concatenate(x) for x in zip(*own, strict=True))
                rows[:, k] = np.sqrt(np.mean(given**2)), np.sqrt(np.mean(identified**2)), np.std(efforts)
    springs, motors = (EffortErrors(before=x[0], after=x[1], spread=x[2]) for x in figures.values())
    return ElasticScore(springs, motors)


def _residuals(
    before: Joint, after: Joint, k: int, sensed: ArmRecording, given: ArmRecording, elasticity: Elasticity
) -> dict[str, tuple[Array, Array, Array]]:
    """Residuals before and after, and the efforts, of each side that was recorded."""
    motor, spring = elasticity.motors.get(before.name), elasticity.springs.get(before.name)
    if motor is None:
        return {}
    period = (given.t[-1] - given.t[0]) / (len(given.t) - 1)
    low_pass = LowPass(period, motor.cutoff)
    if len(given.t) <= 8 * low_pass.reach + 16:
        return {}
    theta, tau, effort = given.theta[:, k], given.tau[:, k], given.motor_effort[:, k]
    delta, found = theta - given.q[:, k], {}
    if spring is not None and measured(sensed.tau[:, k]):
        rate, value = rate_of(delta, period), low_pass(tau[2:-2])
        loads = [
            np.full_like(value, np.nan) if joint.spring.is_rigid else low_pass(joint.spring.load(delta[2:-2], rate))
            for joint in (before, after)
        ]
        found["springs"] = (value - loads[0], value - loads[1], value)
    if measured(effort):
        velocity = rate_of(theta, period)
        acceleration, v = rate_of(velocity, period), low_pass(velocity[2:-2])
        inner = slice(low_pass.reach, -low_pass.reach)
        load, value = low_pass(tau[4:-4]), low_pass(low_pass(effort[4:-4]))
        linear = low_pass(effort[4:-4] - tau[4:-4])[inner], low_pass(acceleration)[inner]
        residuals = [
            linear[0]
            - joint.rotor_inertia * linear[1]
            - low_pass(joint.actuator.friction.effort(v) + joint.actuator.gear.load(load, v) - load)
            for joint in (before, after)
        ]
        found["motors"] = (residuals[0], residuals[1], value)
    return found
