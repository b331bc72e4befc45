# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of eom_dynamics. Every message names what is wrong, where, and what to do."""


class EomDynamicsError(Exception):
    """Base class of all errors that eom_dynamics raises on purpose."""


class RobotDescriptionError(EomDynamicsError, ValueError):
    """A robot description cannot be used as it stands."""


class StateError(EomDynamicsError, ValueError):
    """A joint state, setpoint or wrench has the wrong shape or is not finite."""


class StiffnessError(StateError):
    """A commanded stiffness cannot be used; out of the range of its actuator, say."""


class TrajectoryError(EomDynamicsError, ValueError):
    """Waypoints, samples or parameters of which no trajectory can be made."""


class KernelError(EomDynamicsError, RuntimeError):
    """A kernel cannot be compiled, loaded or run."""


class KernelWarning(UserWarning):
    """A slower backend runs in place of the fastest one."""


class RobotDescriptionWarning(UserWarning):
    """A robot description is usable but says something that no real robot would."""
