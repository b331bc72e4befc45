# SPDX-License-Identifier: Apache-2.0
"""Differential flatness: link motion to motor motion and effort, and back."""

from .base_motion import BaseMotion, base_motion
from .bounds import LimitCheck
from .drive_programs import Drive, DriveCommand, DriveState
from .elastic_arm import ElasticArm
from .feedforward import Feedforward
from .flatness import FlatState, chain_gains, flat_state, linearizing_effort, linearizing_snap, motor_pd_effort
from .limit_violations import LimitViolation
from .motor_derivatives import MotorJet, derivatives_needed, motor_jet
from .spring_chain import ChainJet, SpringChain, SpringStage, chain_derivatives_needed, chain_motor_jet

__all__ = [
    "BaseMotion",
    "ChainJet",
    "Drive",
    "DriveCommand",
    "DriveState",
    "ElasticArm",
    "Feedforward",
    "FlatState",
    "LimitCheck",
    "LimitViolation",
    "MotorJet",
    "SpringChain",
    "SpringStage",
    "base_motion",
    "chain_derivatives_needed",
    "chain_gains",
    "chain_motor_jet",
    "derivatives_needed",
    "flat_state",
    "linearizing_effort",
    "linearizing_snap",
    "motor_jet",
    "motor_pd_effort",
]
