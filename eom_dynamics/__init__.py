# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

# The generated msg, srv and action are in the installed package; this folder may be the source.
__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from . import contacts, equations, identification, kinematics, lie, loops, simulation, trajectory
    from . import lagrange as lagrange
    from .control.contact_thresholds import ContactThresholds
    from .control.external_effort import ExternalEffortObserver
    from .control.observed_payload import estimate_payload
    from .control.online_trajectory import OnlineTrajectory
    from .dynamics import Dynamics
    from .elastic import (
        BaseMotion,
        ElasticArm,
        Feedforward,
        FlatState,
        MotorJet,
        derivatives_needed,
        flat_state,
        linearizing_effort,
        motor_jet,
        motor_pd_effort,
    )
    from .elastic.feedforward import base_motion
    from .equations import (
        EquationsOfMotion,
        FloatingEquationsOfMotion,
        equations_of_motion,
        floating_equations_of_motion,
    )
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

# Imported at first access, which shortens the start of nodes and programs. SymPy is optional: a star import works
# without it, since lagrange is not in __all__.
_SUBPACKAGES = (
    *("actuators", "codegen", "contacts", "control", "elastic", "equations", "exceptions", "export", "identification"),
    *("kinematics", "lagrange", "lie", "loops", "recursion", "robot", "simulation", "trajectory"),
)
# Modules of other names, in the order of the search: modules with few imports first.
_MODULES = (
    *("exceptions", "robot", "elastic", "dynamics", "kinematics", "equations", "floating_base"),
    *("control.contact_thresholds", "control.external_effort", "control.observed_payload", "control.online_trajectory"),
)


def __getattr__(name: str) -> object:
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    if name in __all__:
        for module in _MODULES:
            names = vars(import_module(f".{module}", __name__))
            if name in names:
                globals()[name] = names[name]
                return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES, "__version__"})
