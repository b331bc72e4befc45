# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

from pkgutil import extend_path

# The generated msg, srv and action are installed; this folder may be the source.
__path__ = extend_path(__path__, __name__)

from .dynamics import Dynamics
from .elastic import (
    ElasticArm,
    Feedforward,
    FlatState,
    MotorJet,
    chain_gains,
    derivatives_needed,
    flat_state,
    linearizing_effort,
    linearizing_snap,
    motor_jet,
    motor_pd_effort,
)
from .equations import EquationsOfMotion, equations_of_motion
from .exceptions import (
    EomDynamicsError,
    KernelError,
    KernelWarning,
    LimitError,
    RobotDescriptionError,
    RobotDescriptionWarning,
    StateError,
    StiffnessError,
    TrajectoryError,
)
from .robot import Joint, Robot, load_robot, packaged_robots, robot_from_parameters

__version__ = "0.1.0"

__all__ = [
    "Dynamics",
    "ElasticArm",
    "EomDynamicsError",
    "EquationsOfMotion",
    "Feedforward",
    "FlatState",
    "Joint",
    "KernelError",
    "KernelWarning",
    "LimitError",
    "MotorJet",
    "Robot",
    "RobotDescriptionError",
    "RobotDescriptionWarning",
    "StateError",
    "StiffnessError",
    "TrajectoryError",
    "chain_gains",
    "derivatives_needed",
    "equations_of_motion",
    "flat_state",
    "linearizing_effort",
    "linearizing_snap",
    "load_robot",
    "motor_jet",
    "motor_pd_effort",
    "packaged_robots",
    "robot_from_parameters",
]
