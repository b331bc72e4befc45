# SPDX-License-Identifier: Apache-2.0
"""Recorded motors of drives that have units of their own, in SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Array
from ..control.fields import MEASURED_FIELDS
from ..elastic import DriveState, ElasticArm


def in_si_units(
    arm: ElasticArm, names: Sequence[str], values: Mapping[str, Array], *, sent: bool = False
) -> dict[str, Array]:
    """Convert the fields of JointStates, each (N, length), of motors of an arm to SI units on the link side.

    Efforts that were ``sent`` lack those added by the robot itself: they are added here, at the positions of the motors
    brought to the joints; they are NaN where these are unknown. Others are measured, and whole. Motors that are not
    named count as at rest at zero; columns of other motors stay unchanged.
    """
    result = dict(values)
    motors = [k for k, name in enumerate(arm.motor_names) if name in names]
    if not motors:
        return result
    columns = [list(names).index(arm.motor_names[k]) for k in motors]
    shape = len(next(iter(values.values()))), len(arm.motor_names)
    # Unknown numbers are replaced by the reports of drives at zero, which have an offset.
    numbers = [x.copy() for x in arm.drive_report(DriveState(*np.zeros((len(MEASURED_FIELDS), *shape))))]
    known = np.zeros((len(MEASURED_FIELDS), shape[0], len(motors)), dtype=bool)
    for k, name in enumerate(MEASURED_FIELDS):
        if name in values:
            recorded = values[name][:, columns]
            known[k] = np.isfinite(recorded)
            numbers[k][:, motors] = np.where(known[k], recorded, numbers[k][:, motors])
    state = arm.drive_state(*numbers)
    if sent:
        # References refer to the age of the drives' feedback.
        theta = state.motor_position + arm.robot.drive_feedback_delay.position * state.motor_velocity
        state = state._replace(motor_position=theta)
        if added := arm.robot.compensated_by_robot:
            at = _joints_of_motors(arm, state.motor_position), _joints_of_motors(arm, state.motor_velocity)
            state = state._replace(motor_effort=arm.drive_state(*numbers, sent_at=at).motor_effort)
            known[2] &= np.all(known[: 1 if added == ("gravity",) else 2], axis=(0, 2), keepdims=True)[0]
    for name, is_known, x in zip(MEASURED_FIELDS, known, state, strict=True):
        if name in values:
            result[name] = values[name].copy()
            result[name][:, columns] = np.where(is_known, x[:, motors], np.nan)
    return result


def _joints_of_motors(arm: ElasticArm, x: Array) -> Array:
    """Joint positions (N, n), or rates, of motors (N, m) on undeflected springs; of two motors their mean."""
    sides = np.transpose(arm.side.joint_sides(list(x.T)))
    return np.column_stack([sides[:, arm.motor_joint == joint].mean(axis=1) for joint in range(arm.robot.n)])
