# SPDX-License-Identifier: Apache-2.0
"""Springs, friction, gears, motors and transmissions, independent of any robot."""

from .actuator import Actuator, Gear, Motor
from .friction import Friction
from .transmission import Transmission

__all__ = ["Actuator", "Friction", "Gear", "Motor", "Transmission"]
