# SPDX-License-Identifier: Apache-2.0
"""From the motion of the links to the motion and effort of the motors.

Springs, friction, gear and motor know of no robot: robots are made of them. :class:`ElasticArm` knows robots.
"""

from .actuator import Actuator
from .drive import Drive, Excess
from .elastic_arm import ElasticArm, Feedforward
from .flatness import FlatState, chain_gains, flat_state, linearizing_effort, motor_pd_effort
from .friction import Friction
from .gear import Gear
from .motor import Motor
from .transmission import Transmission

__all__ = [
    "Actuator",
    "Drive",
    "ElasticArm",
    "Excess",
    "Feedforward",
    "FlatState",
    "Friction",
    "Gear",
    "Motor",
    "Transmission",
    "chain_gains",
    "flat_state",
    "linearizing_effort",
    "motor_pd_effort",
]
