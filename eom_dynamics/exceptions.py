# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of eom_dynamics, and the check of optional libraries.

Each message states the fault, its location and the remedy.
"""

import importlib.util
import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType


class EomDynamicsError(Exception):
    """Base class of all exceptions of eom_dynamics."""

    @property
    def errors(self) -> tuple[str, ...]:
        """All errors, one message each."""
        return (str(self),)


class RobotDescriptionError(EomDynamicsError, ValueError):
    """Invalid robot description; its message lists all errors, one per line."""

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self._errors = errors

    @property
    def errors(self) -> tuple[str, ...]:
        """All errors of the description, one message each."""
        return self._errors


class StateError(EomDynamicsError, ValueError):
    """Argument of the wrong shape, not finite, out of range, or an unknown name.

    An object of the wrong class where a Robot, an arm or a function is needed raises Python's TypeError.
    """


class StiffnessError(StateError):
    """Commanded stiffness that the actuator cannot realize, for example out of its range."""


class LimitError(StateError):
    """State or command refused because it exceeds a limit of a joint or motor.

    Attributes:
        worst: joint or motor, and quantity, of the worst violation, such as ``elbow: velocity``.
        numbers: value and limit, such as ``2.5 rad/s, limit 2 rad/s``.
        ratio: ratio as in :class:`eom_dynamics.elastic.LimitViolation`.
    """

    def __init__(self, message: str, worst: str = "", numbers: str = "", ratio: float = 0.0) -> None:
        super().__init__(message)
        self.worst, self.numbers, self.ratio = worst, numbers, ratio


class DoubtfulSetpointError(StateError):
    """Setpoint refused because it contradicts earlier setpoints."""


class TrajectoryError(EomDynamicsError, ValueError):
    """Waypoints, samples or parameters that define no trajectory."""


class ContactError(EomDynamicsError, ValueError):
    """Invalid contact, for example with negative friction, or motion that no contact forces can balance."""


class SimulationError(EomDynamicsError):
    """A simulation cannot continue."""


class KernelError(EomDynamicsError, RuntimeError):
    """A kernel cannot be compiled or loaded, or its backend is not installed."""


class KernelWarning(UserWarning):
    """Fallback to a slower backend."""


def warn_of_kernel(text: str) -> None:
    """Warn with a :class:`KernelWarning` at the line of the caller of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "eom_dynamics":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, KernelWarning, stacklevel=level)


class RobotDescriptionWarning(UserWarning):
    """Usable robot description with values that are physically implausible."""


class MissingLibraryError(EomDynamicsError, ImportError):
    """An optional library is not installed."""


EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "casadi": ("casadi",),
        "cluster": ("distributed",),
        "completion": ("argcomplete",),
        "demo": ("matplotlib", "plotly", "rich"),
        "descriptions": ("robot_descriptions",),
        "mjcf": ("mujoco",),
        "parquet": ("pyarrow",),
        "replay": ("rich", "rosbags"),
        "report": ("plotly", "rich", "rosbags"),
        "retime": ("plotly", "rich"),
        "symbolic": ("sympy",),
        "xacro": ("xacro",),
    }
)
"""Modules installed by an extra of ``setup.cfg``, by its name in ``pip install '.[EXTRA]'`` from the sources."""


def require(extra: str) -> None:
    """Raise MissingLibraryError, with the remedy, if a library of an extra, a key of :data:`EXTRAS`, is missing."""
    if message := missing(extra):
        raise MissingLibraryError(message)


def missing(extra: str) -> str | None:
    """Installation command for missing libraries of an extra, a key of :data:`EXTRAS`; None if nothing is missing."""
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            return (
                f"{module} is not installed; run: make build EXTRAS={extra}, or pip install '.[{extra}]' in the sources"
            )
    return None


def require_ros() -> None:
    """Raise MissingLibraryError, with the remedy, if rclpy or the messages of this package are missing."""
    for module in ("rclpy", "eom_dynamics.msg"):
        if not _is_installed(module):
            raise MissingLibraryError(
                f"{module} is not installed; run: make build, or colcon build on a ROS 2 installation, and source "
                "install/setup.bash"
            )


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
