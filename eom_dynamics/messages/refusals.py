# SPDX-License-Identifier: Apache-2.0
"""Refused setpoints: reason, and whether the last valid command is repeated; for the node and for replay."""

from __future__ import annotations

from ..exceptions import EomDynamicsError, StateError, StiffnessError

_HELD: dict[str, tuple[type[StateError], ...]] = {
    "stiffness": (StiffnessError,),
    "always": (StateError,),
    "never": (),
}


def is_held(error: Exception, hold_last_command: str) -> bool:
    """Whether a refused setpoint is answered with the last valid command.

    Never after an internal error, or while a trajectory is played: then the setpoint is not what is wrong.

    Args:
        error: why it was refused.
        hold_last_command: ``stiffness``, ``always`` or ``never``, as the parameter of the node.
    """
    return isinstance(error, _HELD[hold_last_command])


def refusal_reason(error: Exception) -> str:
    """Return the reason of a refusal for a log."""
    internal = "" if isinstance(error, EomDynamicsError) else f"internal error: {type(error).__name__}: "
    return f"{internal}{error}"
