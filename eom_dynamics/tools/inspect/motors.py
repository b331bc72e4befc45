# SPDX-License-Identifier: Apache-2.0
"""Numbers of the motors before and behind their gears."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...robot import Robot
from ..quantity_text import for_json


def motors(robot: Robot, poses: Array) -> list[dict[str, Any]]:
    """Numbers of each motor at poses (N, n), ready for JSON; empty if the robot's description has no motors.

    Returns:
        Dictionaries with ``motor``; ``gear_ratio``; ``rotor_inertia`` on the link side of the gear, kg m² or kg, and
        ``shaft_inertia`` before it, kg m²; ``speed`` at the joint's velocity limit, rad/s; ``torque``, ``current`` and
        ``voltage`` that hold the arm's weight in the worst of the poses, N m, A, V; the ``torque_constant``, N m/A; and
        the limits of speed, torque, current and voltage. None for infinite or unknown numbers.
    """
    arm = ElasticArm(robot)
    motor = arm.motor
    limited = [np.isfinite(x).any() for x in (motor.speed_limit, motor.torque_limit, motor.torque_constant)]
    if not (arm.motor_inertia.any() or (arm.gear_ratio != 1).any() or any(limited)):
        return []
    still = np.zeros_like(poses)
    held = arm.drive(arm.feedforward(poses, still, still))
    ratio = np.abs(arm.gear_ratio)
    velocity = np.array([joint.limits.velocity for joint in robot.independent_joints])[arm.motor_joint]
    columns = {
        "gear_ratio": arm.gear_ratio,
        "rotor_inertia": arm.motor_inertia,
        "shaft_inertia": arm.motor_inertia / ratio**2,
        "speed": ratio * velocity,
        "torque": np.abs(held.torque).max(axis=0),
        "current": np.abs(held.current).max(axis=0),
        "voltage": np.abs(held.voltage).max(axis=0),
        "torque_constant": motor.torque_constant,
        "speed_limit": motor.speed_limit,
        "torque_limit": motor.torque_limit,
        "current_limit": motor.current_limit,
        "voltage_limit": motor.voltage_limit,
    }
    values = np.stack([np.broadcast_to(x, ratio.shape) for x in columns.values()], axis=1)
    rows = zip(arm.motor_names, for_json(values), strict=True)
    return [{"motor": name, **dict(zip(columns, row, strict=True))} for name, row in rows]
