# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

# The generated msg, srv and action are installed; this folder may be the source.
__path__ = extend_path(__path__, __name__)

from . import equations, kinematics, lie
from .dynamics import Dynamics
from .elastic import (
    BaseMotion,
    ElasticArm,
    Feedforward,
    FlatState,
    MotorJet,
    base_motion,
    derivatives_needed,
    flat_state,
    linearizing_effort,
    motor_jet,
    motor_pd_effort,
)
from .equations import EquationsOfMotion, FloatingEquationsOfMotion, equations_of_motion, floating_equations_of_motion
from .exceptions import (
    ContactError,
    DoubtfulSetpointError,
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
from .floating_base import FloatingBase
from .kinematics import (
    InverseKinematicsResult,
    InverseMotion,
    Kinematics,
    differential_inverse_kinematics,
    inverse_kinematics,
)
from .robot import Joint, Payload, Robot, load_robot, packaged_robots, robot_from_parameters

if TYPE_CHECKING:
    from . import contacts, identification, loops, simulation, trajectory
    from . import lagrange as lagrange
    from .control.contact_thresholds import ContactThresholds
    from .control.external_effort import ExternalEffortObserver
    from .control.observed_payload import estimate_payload
    from .control.online_trajectory import OnlineTrajectory

__version__ = "1.0.0"

__all__ = [
    "BaseMotion",
    "ContactError",
    "ContactThresholds",
    "DoubtfulSetpointError",
    "Dynamics",
    "ElasticArm",
    "EomDynamicsError",
    "EquationsOfMotion",
    "ExternalEffortObserver",
    "Feedforward",
    "FlatState",
    "FloatingBase",
    "FloatingEquationsOfMotion",
    "InverseKinematicsResult",
    "InverseMotion",
    "Joint",
    "KernelError",
    "KernelWarning",
    "Kinematics",
    "LimitError",
    "MotorJet",
    "OnlineTrajectory",
    "Payload",
    "Robot",
    "RobotDescriptionError",
    "RobotDescriptionWarning",
    "StateError",
    "StiffnessError",
    "TrajectoryError",
    "base_motion",
    "contacts",
    "derivatives_needed",
    "differential_inverse_kinematics",
    "equations",
    "equations_of_motion",
    "estimate_payload",
    "flat_state",
    "floating_equations_of_motion",
    "identification",
    "inverse_kinematics",
    "kinematics",
    "lie",
    "linearizing_effort",
    "load_robot",
    "loops",
    "motor_jet",
    "motor_pd_effort",
    "packaged_robots",
    "robot_from_parameters",
    "simulation",
    "trajectory",
]

# Imported at first access, since they import SciPy or SymPy, or parts of it do. SymPy is optional, so that lagrange is
# not in __all__: a star import works without it.
_LAZY = ("contacts", "identification", "lagrange", "loops", "simulation", "trajectory")
_LAZY_NAMES = {
    "ContactThresholds": ".control.contact_thresholds",
    "ExternalEffortObserver": ".control.external_effort",
    "OnlineTrajectory": ".control.online_trajectory",
    "estimate_payload": ".control.observed_payload",
}


def __getattr__(name: str) -> object:
    if name in _LAZY_NAMES:
        return getattr(import_module(_LAZY_NAMES[name], __name__), name)
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "__version__"})
