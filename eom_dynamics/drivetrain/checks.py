# SPDX-License-Identifier: Apache-2.0
"""Which numbers a part of a drivetrain may be made of."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..exceptions import RobotDescriptionError

Array = NDArray[np.float64]


class ParameterError(RobotDescriptionError):
    """A parameter that no actuator can have.

    Attributes:
        name: of the parameter, as in a robot's file.
        reason: what is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def refuse(name: str, reason: str) -> NoReturn:
    """Raise the error of a parameter that no actuator can have."""
    raise ParameterError(name, reason)


def positive(name: str, value: Any) -> Array:
    """The parameter as an array of finite numbers above 0."""
    array = np.asarray(value, dtype=float)
    if not np.all((array > 0) & np.isfinite(array)):
        refuse(name, f"must be finite and greater than 0, is {array}")
    return array


def not_negative(name: str, value: Any) -> Array:
    """The parameter as an array of finite numbers from 0 on."""
    array = np.asarray(value, dtype=float)
    if not np.all((array >= 0) & np.isfinite(array)):
        refuse(name, f"must be finite and not negative, is {array}")
    return array
