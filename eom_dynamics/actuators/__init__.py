# SPDX-License-Identifier: Apache-2.0
"""From the motion of the links of a robot to the motion and effort of its motors, and back."""

from .drive import Drive, Excess
from .elastic_arm import ElasticArm, Feedforward
from .flatness import FlatState, chain_gains, flat_state, linearizing_effort, linearizing_snap, motor_pd_effort
from .motor_series import MotorSeries, derivatives_needed, motor_series

__all__ = [
    "Drive",
    "ElasticArm",
    "Excess",
    "Feedforward",
    "FlatState",
    "MotorSeries",
    "chain_gains",
    "derivatives_needed",
    "flat_state",
    "linearizing_effort",
    "linearizing_snap",
    "motor_pd_effort",
    "motor_series",
]
