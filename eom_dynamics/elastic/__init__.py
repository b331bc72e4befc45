# SPDX-License-Identifier: Apache-2.0
"""Differential flatness: maps between link motion and motor motion and effort."""

from .drive_programs import Drive, DriveCommand, DriveState
from .elastic_arm import ElasticArm
from .feedforward import BaseMotion, Feedforward, base_motion
from .flatness import FlatState, flat_state, linearizing_effort, motor_pd_effort
from .limit_violations import LimitViolation
from .limits import LimitCheck
from .motor_derivatives import MotorJet, derivatives_needed, motor_jet

__all__ = [
    "BaseMotion",
    "Drive",
    "DriveCommand",
    "DriveState",
    "ElasticArm",
    "Feedforward",
    "FlatState",
    "LimitCheck",
    "LimitViolation",
    "MotorJet",
    "base_motion",
    "derivatives_needed",
    "flat_state",
    "linearizing_effort",
    "motor_jet",
    "motor_pd_effort",
]
