# SPDX-License-Identifier: Apache-2.0
"""Recorded numbers of drives, in their units, as motors in SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..elastic import ElasticArm
from ..messages.fields import MEASURED_FIELDS
from ..robot import Robot
from .bags import Topic
from .bags.types import JOINT_STATE

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

    def in_si_units(self, topic: Topic, names: Sequence[str], values: Mapping[str, Array]) -> dict[str, Array]:
        """Fields of a JointState, each (N, length), of the motors of the robot in SI units.

        Efforts of a topic ``motor_setpoint`` were sent: those that the robot adds itself are added, at the positions of
        the motors brought to the joints. Others are measured, and whole.
        """
        arm = self._arm
        if arm is None or not is_of_motors(topic) or not set(arm.motor_names) <= set(names):
            return dict(values)
        places = [list(names).index(name) for name in arm.motor_names]
        known = next(iter(values.values()))
        unknown = np.zeros((len(known), len(places)))
        given = [values[name][:, places] if name in values else unknown for name in MEASURED_FIELDS]
        numbers = [np.nan_to_num(x, posinf=0.0, neginf=0.0) for x in given]
        found = arm.drive_state(*numbers)
        if topic.name.endswith(_MOTOR_TOPICS[0]):
            found = arm.drive_state(*numbers, sent_at=(self._joints(found[0]), self._joints(found[1])))
        result = dict(values)
        for name, own, recorded in zip(MEASURED_FIELDS, found, given, strict=True):
            if name in values:
                result[name] = values[name].copy()
                result[name][:, places] = np.where(np.isfinite(recorded), own, np.nan)
        return result

    def _joints(self, x: Array) -> Array:
        """Joint positions (N, n), or rates, of motors (N, m) on undeflected springs; of two motors their mean."""
        arm = self._arm
        assert arm is not None  # of in_si_units
        sides = np.transpose(arm.side.joint_sides(list(x.T)))
        return np.column_stack([sides[:, arm.motor_joint == joint].mean(axis=1) for joint in range(arm.robot.n)])
