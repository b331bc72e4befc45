# SPDX-License-Identifier: Apache-2.0
"""Recorded numbers of drives, in their units, as motors in SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..bags import Topic
from ..bags.types import JOINT_STATE
from ..elastic import DriveState, ElasticArm
from ..messages.fields import MEASURED_FIELDS
from ..robot import Robot

# Both are JointStates: of the node, and of a simulated robot.
_MOTOR_TOPICS = ("motor_setpoint", "motor_states")


def is_of_motors(topic: Topic) -> bool:
    """Whether a topic of JointState has positions of motors rather than links, judged by its name."""
    return topic.type == JOINT_STATE and topic.name.endswith(_MOTOR_TOPICS)


class DriveNumbers:
    """Takes recorded motors of a robot into SI units, link side; those of others remain as they are."""

    def __init__(self, robot: Robot | None) -> None:
        self._robot = robot

    @cached_property
    def _arm(self) -> ElasticArm | None:
        if self._robot is None or not self._robot.has_own_drives:
            return None
        return ElasticArm(self._robot, backend="numpy")

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the motors whose numbers are taken."""
        return () if self._arm is None else self._arm.motor_names

    def in_si_units(
        self, topic: Topic, names: Sequence[str], values: Mapping[str, Array], of_motors: bool = False
    ) -> dict[str, Array]:
        """Fields of a JointState, each (N, length), of the motors of the robot in SI units.

        Efforts of a topic ``motor_setpoint`` were sent: those that the robot adds itself are added, at the positions of
        the motors brought to the joints; they are NaN where these are unknown. Others are measured, and whole. Motors
        that are not named count as at rest at zero. Topics of JointState are of motors by their names, or if said so.
        """
        arm, result = self._arm, dict(values)
        own = [k for k, name in enumerate(self.motor_names) if name in names]
        if arm is None or not own or not values:
            return result
        if not (is_of_motors(topic) or (of_motors and topic.type == JOINT_STATE)):
            return result
        places = [list(names).index(arm.motor_names[k]) for k in own]
        shape = len(next(iter(values.values()))), len(arm.motor_names)
        # In the place of unknown numbers: those of drives at zero, which has an offset.
        numbers = [x.copy() for x in arm.drive_report(DriveState(*np.zeros((len(MEASURED_FIELDS), *shape))))]
        known = np.zeros((len(MEASURED_FIELDS), shape[0], len(own)), dtype=bool)
        for k, name in enumerate(MEASURED_FIELDS):
            if name in values:
                recorded = values[name][:, places]
                known[k] = np.isfinite(recorded)
                numbers[k][:, own] = np.where(known[k], recorded, numbers[k][:, own])
        found, sent = arm.drive_state(*numbers), topic.name.endswith(_MOTOR_TOPICS[0])
        added = arm.robot.compensated_by_robot
        if sent:
            # References are those of the age of the drives' feedback.
            theta = found.motor_position + arm.robot.drive_feedback_delay.position * found.motor_velocity
            found = found._replace(motor_position=theta)
        if sent and added:
            at = joints_of_motors(arm, theta), joints_of_motors(arm, found.motor_velocity)
            found = found._replace(motor_effort=arm.drive_state(*numbers, sent_at=at).motor_effort)
            states = known[: 1 if added == ("gravity",) else 2]
            known[2] &= np.all(states, axis=(0, 2), keepdims=True)[0]
        for name, there, x in zip(MEASURED_FIELDS, known, found, strict=True):
            if name in values:
                result[name] = values[name].copy()
                result[name][:, places] = np.where(there, x[:, own], np.nan)
        return result


def joints_of_motors(arm: ElasticArm, x: Array) -> Array:
    """Joint positions (N, n), or rates, of motors (N, m) on undeflected springs; of two motors their mean."""
    sides = np.transpose(arm.side.joint_sides(list(x.T)))
    return np.column_stack([sides[:, arm.motor_joint == joint].mean(axis=1) for joint in range(arm.robot.n)])
