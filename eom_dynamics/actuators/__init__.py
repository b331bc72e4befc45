# SPDX-License-Identifier: Apache-2.0
"""Springs, friction, gears, motors and transmissions, independent of any robot."""

from .actuator import Actuator, Gear, Motor, Transmission
from .friction import Friction

__all__ = ["Actuator", "Friction", "Gear", "Motor", "Transmission"]
