# SPDX-License-Identifier: Apache-2.0
"""Actuator of a joint: gear loss, motor, and both with friction; transmission from several motors to several joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite
from ..arrays import Array, Scalar
from ..elementary import clipped, exp_times
from ..jet import Jet
from ..jet_functions import exponential, hyperbolic_tangent
from .friction import FRICTIONLESS, Friction
from .parameters import Entry, not_negative, positive, refuse, square


@dataclass(frozen=True, eq=False)
class Gear:
    """Gear with an efficiency, each parameter one number or (m,) for m motors.

    For an effort tau behind the gear, a driving motor gives tau/eta; a braking motor gives tau eta, because the loss
    brakes as well. The exponent is -tanh(P/P_0) instead of the sign of the power P = tau v, so that the effort is
    smooth if the power changes sign; above 3 P_0 the exponent is within 0.5 % of 1.

    Attributes:
        efficiency: eta, 0 < eta <= 1.
        smoothing_power: P_0 > 0, W.
    """

    efficiency: Annotated[float | Array, Entry("of the gear", "", "positive", example=0.9)] = 1.0
    smoothing_power: Annotated[
        float | Array, Entry("power scale of the change from driving to braking", "W", "positive")
    ] = 0.1

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError unless 0 < eta <= 1 and P_0 > 0."""
        positive("efficiency", self.efficiency)
        if np.any(np.greater(self.efficiency, 1)):
            refuse("efficiency", f"must not exceed 1, is {self.efficiency}")
        positive("smoothing_power", self.smoothing_power)

    @property
    def is_lossless(self) -> bool:
        """True if the efficiency is 1."""
        return bool(np.all(np.equal(self.efficiency, 1)))

    def load_jet(self, tau: Jet, velocity: Jet) -> Jet:
        """Effort before the gear for an effort tau behind it, N m (N), on the link side, with time derivatives.

        The velocity of the gear is in rad/s (m/s).
        """
        power = hyperbolic_tangent((tau * velocity) * (1 / self.smoothing_power))
        rate = -np.log(self.efficiency)
        return tau * exponential(power * rate, exp_times(power[0], rate))

    def load(self, tau: Array, velocity: Array) -> Array:
        """:meth:`load_jet` for efforts and velocities (…,), or (…, m) for m motors."""
        return np.asarray(self.load_jet(Jet([tau]), Jet([velocity]))[0])


LOSSLESS = Gear()
"""Gear without loss."""


def _limit(name: str, unit: str, example: float) -> Entry:
    """Entry of a limit of the motor before the gear."""
    about = f"largest {name} of the motor, before the gear"
    return Entry(about, unit, "positive", name=name, section="limits", example=example)


@dataclass(frozen=True, eq=False)
class Motor:
    """DC motor, or the equivalent of another kind, each parameter one number or (m,) for m motors.

    i = T/k_t, u = R i + k_e w with shaft torque T and speed w. The voltage of the winding's inductance, L di/dt, is
    neglected: it would take one more derivative of the motion.

    Attributes:
        torque_constant: k_t > 0, N m/A; NaN if unknown: current and voltage are then NaN.
        resistance: R >= 0, ohm; NaN if unknown: the voltage is then NaN.
        back_emf_constant: k_e >= 0, V s/rad; NaN stands for k_t, its value in SI units.
        torque_limit, speed_limit, current_limit, voltage_limit: > 0, N m, rad/s, A, V; infinite if unlimited.
    """

    torque_constant: Annotated[float | Array, Entry("of the motor", "N m/A", "positive", example=0.05)] = np.nan
    resistance: Annotated[float | Array, Entry("of the winding", "ohm", "not negative", example=0.5)] = np.nan
    back_emf_constant: Annotated[
        float | Array, Entry("of the motor, by default its torque_constant", "V s/rad", "not negative")
    ] = np.nan
    torque_limit: Annotated[float | Array, _limit("torque", "N m", 1.0)] = np.inf
    speed_limit: Annotated[float | Array, _limit("speed", "rad/s", 500.0)] = np.inf
    current_limit: Annotated[float | Array, _limit("current", "A", 20.0)] = np.inf
    voltage_limit: Annotated[float | Array, _limit("voltage", "V", 48.0)] = np.inf

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError for invalid parameters, or a limit without its constant."""
        for field in fields(self):
            value = np.asarray(getattr(self, field.name), dtype=float)
            if field.name in ("resistance", "back_emf_constant"):
                not_negative(field.name, np.nan_to_num(value, nan=0.0, posinf=np.inf))
            elif np.any(value <= 0):
                refuse(field.name, f"must be positive, is {value}")
        if np.any(np.isfinite(self.current_limit) & np.isnan(self.torque_constant)):
            refuse("torque_constant", "missing; the current limit needs it")
        if np.any(np.isfinite(self.voltage_limit) & np.isnan(np.multiply(self.torque_constant, self.resistance))):
            refuse("resistance", "missing, or torque_constant is; the voltage limit needs both")

    def current(self, torque: Scalar) -> Scalar:
        """T/k_t, A; NaN if k_t is unknown."""
        return torque / self.torque_constant

    def voltage(self, torque: Scalar, speed: Scalar) -> Scalar:
        """R i + k_e w, V; NaN if R or k_t is unknown."""
        return self.current(torque) * self.resistance + speed * self._back_emf

    def clipped(self, torque: Scalar, speed: Scalar) -> Scalar:
        """The nearest torque within the limits of torque, current and voltage.

        If the back-EMF alone exceeds the voltage limit, the motor brakes within the limits of torque and current.
        Without resistance no torque changes the voltage.
        """
        if self._of_voltage is not None:
            volts, emf, per_volt = self._of_voltage
            back_emf = speed * emf
            torque = clipped(torque, (-back_emf - volts) * per_volt, (-back_emf + volts) * per_volt)
        most = self._most
        return torque if most is None else clipped(torque, -most, most)

    @cached_property
    def _of_voltage(self) -> Any:
        """Limit of voltage, back-EMF constant, and torque for a volt; None if no voltage is limited."""
        limited = np.isfinite(self.voltage_limit) & np.greater(self.resistance, 0)
        if not np.any(limited):
            return None
        # Motors without a limit get a range beyond all torques.
        with np.errstate(divide="ignore", invalid="ignore"):
            per_volt = np.where(limited, np.divide(self.torque_constant, self.resistance), 1.0)
        volts, emf = np.where(limited, self.voltage_limit, 1e300), np.where(limited, self._back_emf, 0.0)
        return tuple(x.item() if x.ndim == 0 else x for x in (volts, emf, per_volt))

    @cached_property
    def _most(self) -> Any:
        """Largest torque within the limits of torque and current; None without a limit."""
        most = np.fmin(self.torque_limit, self.current_limit * np.nan_to_num(self.torque_constant, nan=np.inf))
        return most if np.any(np.isfinite(most)) else None

    @property
    def _back_emf(self) -> float | Array:
        """k_e, V s/rad."""
        constant: Array = np.where(np.isnan(self.back_emf_constant), self.torque_constant, self.back_emf_constant)
        return constant if constant.ndim else float(constant)


IDEAL = Motor()
"""Motor with unknown constants and no limits."""


Part = TypeVar("Part", Friction, Gear, Motor)


@dataclass(frozen=True, eq=False)
class Actuator:
    """Friction, gear loss and motor of a joint.

    Attributes:
        friction: friction of motor and gear, on the link side of the gear.
        gear: loss of the gear.
        motor: motor before the gear.
    """

    friction: Annotated[Friction, Entry("friction of motor and gear, on the link side of the gear")] = FRICTIONLESS
    gear: Annotated[Gear, Entry(is_inline=True)] = LOSSLESS
    motor: Annotated[Motor, Entry(is_inline=True)] = IDEAL


IDEAL_ACTUATOR = Actuator()
"""Actuator without friction, loss or limits."""


def stacked(parts: Sequence[Part]) -> Part:
    """Stack parts into a single part with parameters (number of parts,)."""
    kind = type(parts[0])
    return kind(*(np.array([getattr(part, field.name) for part in parts]) for field in fields(kind)))


# Beyond this condition number a transmission counts as singular.
_WORST_CONDITION = 1e8


class Transmission:
    """theta = T phi: joint sides theta of the springs from motor positions phi, and motor efforts Tᵀ tau.

    A differential of two joints has T = [[1/2, 1/2], [1/2, -1/2]].

    Attributes:
        matrix: T (g, g).
        inverse: inverse of T (g, g).
        actuators: names of the motors in the robot file, by index; empty without names.
    """

    def __init__(self, matrix: ArrayLike, actuators: Sequence[str] = ()) -> None:
        """Check the matrix; raises ParameterError unless it is square, finite and invertible."""
        self.matrix, self.actuators = square("matrix", matrix), tuple(actuators)
        invertible = np.linalg.cond(self.matrix) < _WORST_CONDITION
        if not (invertible and all_finite(np.linalg.inv(self.matrix))):
            refuse("matrix", "must be invertible: the motors cannot drive all motions of the joints")
        self.inverse = np.linalg.inv(self.matrix)
