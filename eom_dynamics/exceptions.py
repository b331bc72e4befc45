# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of eom_dynamics. Each message says what is wrong, where, and what to do."""

import sys
import warnings


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
    """Commanded stiffness that the actuator cannot realise, for example out of its range."""


class LimitError(StateError):
    """State or command refused because it exceeds a limit of a joint or motor.

    Attributes:
        worst: joint or motor, and quantity, of the worst violation, such as ``elbow: velocity``.
        numbers: its value and limit, such as ``2.5 rad/s, limit 2 rad/s``.
        ratio: as in :class:`eom_dynamics.elastic.LimitViolation`.
    """

    def __init__(self, message: str, worst: str = "", numbers: str = "", ratio: float = 0.0) -> None:
        super().__init__(message)
        self.worst, self.numbers, self.ratio = worst, numbers, ratio


class DoubtfulSetpointError(StateError):
    """Setpoint refused because it contradicts those before it."""


class TrajectoryError(EomDynamicsError, ValueError):
    """Waypoints, samples or parameters that define no trajectory."""


class ContactError(EomDynamicsError, ValueError):
    """Invalid contact, such as one with negative friction, or motion that no contact forces can balance."""


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
