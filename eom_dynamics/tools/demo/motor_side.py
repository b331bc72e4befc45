# SPDX-License-Identifier: Apache-2.0
"""Deflections and loads of springs in a given motion of links and motors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm


def deflection(arm: ElasticArm, links: Array, motors: Array) -> Array:
    """Return the deflections of the springs, theta - q behind a transmission, or their rates.

    Args:
        arm: springs and transmission.
        links: joint variables (N, n), or their rates.
        motors: motor positions (N, m), or their rates.
    """
    joint_side = motors.copy()
    if arm.transmission:
        joints, transmission = arm.transmission
        places = np.searchsorted(arm.motor_joint, joints)
        joint_side[:, places] = transmission.joints(motors[:, places])
    return joint_side - links[:, arm.motor_joint]


def motor_load(arm: ElasticArm, deltas: Sequence[Array], tau: Array) -> Array:
    """Return the efforts of the springs at the motors (N, m), N m or N.

    Args:
        arm: springs and transmission.
        deltas: deflections of the springs and their rates, each (N, m).
        tau: efforts on the links (N, n), which rigid joints transmit.
    """
    load = np.where(arm.rigid[arm.motor_joint], tau[:, arm.motor_joint], arm.spring_set.loads(*deltas[:2]))
    if arm.transmission:
        joints, transmission = arm.transmission
        places = np.searchsorted(arm.motor_joint, joints)
        load[:, places] = transmission.motor_effort(load[:, places])
    return load
