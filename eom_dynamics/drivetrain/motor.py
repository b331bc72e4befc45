# SPDX-License-Identifier: Apache-2.0
"""The electric motor before the gear: current, winding voltage, and what it can give."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .checks import not_negative, refuse

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Motor:
    """A direct-current motor, or the equivalent of another kind, each parameter one number or one a motor.

    i = T/k_t, u = R i + k_e w with the shaft's torque T and speed w. The voltage over the winding's inductance,
    L di/dt, is left out: it would take one derivative more of the motion.

    Attributes:
        torque_constant: k_t > 0, N m/A; NaN where it is not known, as are then current and voltage.
        resistance: R >= 0, ohm; NaN where it is not known, as is then the voltage.
        back_emf_constant: k_e >= 0, V s/rad; NaN stands for k_t, which it equals in SI units.
        torque_limit, speed_limit, current_limit, voltage_limit: > 0, N m, rad/s, A, V; infinite without a limit.
    """

    torque_constant: float | Array = np.nan
    resistance: float | Array = np.nan
    back_emf_constant: float | Array = np.nan
    torque_limit: float | Array = np.inf
    speed_limit: float | Array = np.inf
    current_limit: float | Array = np.inf
    voltage_limit: float | Array = np.inf

    def __post_init__(self) -> None:
        """Raises RobotDescriptionError where a constant or limit is not positive, or a limit lacks its constant."""
        for field in fields(self):
            value = np.asarray(getattr(self, field.name), dtype=float)
            if field.name in ("resistance", "back_emf_constant"):
                not_negative(field.name, np.nan_to_num(value, nan=0.0, posinf=np.inf))
            elif np.any(value <= 0):
                refuse(field.name, f"must be greater than 0, is {value}")
        if np.any(np.isfinite(self.current_limit) & np.isnan(self.torque_constant)):
            refuse("torque_constant", "missing; the current limit needs it")
        if np.any(np.isfinite(self.voltage_limit) & np.isnan(np.multiply(self.torque_constant, self.resistance))):
            refuse("resistance", "missing, or torque_constant is; the voltage limit needs both")

    def current(self, torque: Array) -> Array:
        """T/k_t, A; NaN where k_t is not known."""
        return torque / self.torque_constant

    def voltage(self, torque: Array, speed: Array) -> Array:
        """R i + k_e w, V; NaN where R or k_t is not known."""
        back_emf = np.where(np.isnan(self.back_emf_constant), self.torque_constant, self.back_emf_constant)
        return self.resistance * self.current(torque) + back_emf * speed

    def clipped(self, torque: Array, speed: Array) -> Array:
        """The torque nearest to the given one that keeps within the limits of torque, current and voltage.

        Where the speed alone takes more than the voltage there is, that is the torque that brakes the motor as far
        as current and torque go.
        """
        most = np.fmin(self.torque_limit, self.current_limit * np.nan_to_num(self.torque_constant, nan=np.inf))
        back_emf = np.where(np.isnan(self.back_emf_constant), self.torque_constant, self.back_emf_constant)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_volt = np.divide(self.torque_constant, self.resistance)
            high = np.nan_to_num((self.voltage_limit - back_emf * speed) * per_volt, nan=np.inf, posinf=np.inf)
            low = np.nan_to_num((-self.voltage_limit - back_emf * speed) * per_volt, nan=-np.inf, neginf=-np.inf)
        return np.clip(np.clip(torque, low, high), -most, most)


IDEAL = Motor()
"""A motor of which nothing is said."""
