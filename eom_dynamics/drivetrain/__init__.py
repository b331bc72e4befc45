# SPDX-License-Identifier: Apache-2.0
"""What stands between a motor and its link: springs, gear, friction, the motor itself. They know of no robot."""

from .actuator import Actuator
from .friction import Friction
from .gear import Gear
from .motor import Motor
from .transmission import Transmission

__all__ = ["Actuator", "Friction", "Gear", "Motor", "Transmission"]
