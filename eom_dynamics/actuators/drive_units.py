# SPDX-License-Identifier: Apache-2.0
"""A drive: units of motor motion and effort that it is sent and reports, and the age of its measurements."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, pi
from typing import Annotated, NamedTuple

from .parameters import Entry, finite, positive, refuse

SIDES = ("joint", "motor")
"""Sides of the gear for drive units: at the joint, behind the gear, or at the motor shaft, before it.

The index of a side is its number in messages.
"""

EFFORTS = ("torque", "current", "per_mille")
"""Effort units of a drive: torque, N m (N); current, A; or torque in per mille of its rated torque (CiA 402)."""


class DriveScales(NamedTuple):
    """Factors from SI units on the link side of the gear to drive units, and the drive position at zero."""

    position: float
    velocity: float
    effort: float
    offset: float


@dataclass(frozen=True)
class DriveUnits:
    """Units of a drive; by default SI units on the link side of the gear.

    Attributes:
        side: one of :data:`SIDES`; None is ``joint``, and only valid without a gear.
        sign: 1, or -1 for a drive that counts backwards.
        units_per_turn: of positions: 1 for turns, 2 pi for rad, or the counts of the encoder.
        velocity_units_per_turn: of velocities, at one turn a second: 60 for turns a minute; None: as of positions.
        offset: position of the drive at motor position zero, in its units.
        effort: one of :data:`EFFORTS`.
        rated_torque: N m (N) on that side, with ``per_mille``; else None.
    """

    side: Annotated[
        str | None, Entry("side of the gear for drive units; required with a gear", options=SIDES, example="motor")
    ] = None
    sign: Annotated[float, Entry("-1 for a drive that counts backwards", example=1.0)] = 1.0
    units_per_turn: Annotated[float, Entry("its position after one turn there", "", "positive", example=1.0)] = 2 * pi
    velocity_units_per_turn: Annotated[
        float | None, Entry("its velocity at one turn a second, by default units_per_turn", "", "positive")
    ] = None
    offset: Annotated[float, Entry("its position at motor position zero, in its units", example=0.0)] = 0.0
    effort: Annotated[str, Entry("effort unit of the drive", options=EFFORTS, example="torque")] = "torque"
    rated_torque: Annotated[float | None, Entry("of effort: per_mille, on that side", "N m", "positive")] = None

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError for invalid or missing parameters."""
        for name, value, options in (("side", self.side or SIDES[0], SIDES), ("effort", self.effort, EFFORTS)):
            if value not in options:
                refuse(name, f"must be one of {', '.join(options)}, is {value!r:.60}")
        if self.sign not in (1, -1):
            refuse("sign", f"must be 1 or -1, is {self.sign:g}; a gear ratio is the joint's gear_ratio")
        positive("units_per_turn", self.units_per_turn)
        finite("offset", self.offset)
        for name in ("velocity_units_per_turn", "rated_torque"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if (self.rated_torque is None) == (self.effort == "per_mille"):
            reason = "missing; effort: per_mille needs it" if self.rated_torque is None else "needs effort: per_mille"
            refuse("rated_torque", reason)

    def scales(self, gear_ratio: float, torque_constant: float) -> DriveScales:
        """Factors for a motor with a gear ratio and a torque constant, N m/A; NaN if unknown.

        ParameterError if the drive takes current, and the torque constant is unknown, or if the motor has a gear, and
        the side is not given.
        """
        if self.side is None and gear_ratio != 1:
            refuse(
                "side",
                f'missing, gear_ratio {gear_ratio:g}; write "side: motor" for a drive that counts at the motor shaft, '
                f'{gear_ratio:g} times the joint, or "side: joint" behind the gear',
            )
        if self.effort == "current" and isnan(torque_constant):
            refuse("effort", "current needs the torque_constant of the actuator")
        at_motor = self.side == "motor"
        turned = self.sign * (gear_ratio if at_motor else 1.0)
        per_turn = self.velocity_units_per_turn or self.units_per_turn
        # The torque constant belongs to the motor: behind the gear, the same current gives a larger torque.
        constant = torque_constant * (1.0 if at_motor else abs(gear_ratio))
        per_torque = 1e3 / self.rated_torque if self.rated_torque else 1 / constant if self.effort == "current" else 1.0
        # rad are unchanged, to the bit.
        position, velocity = (turned * (1.0 if x == 2 * pi else x / (2 * pi)) for x in (self.units_per_turn, per_turn))
        return DriveScales(position, velocity, per_torque / turned, self.offset)


SI_UNITS = DriveUnits(side=SIDES[0])
"""Units of a drive without a section: SI units behind the gear, as in the library."""


class FeedbackDelay(NamedTuple):
    """Mean age of the measurements that a drive compares with its references, s.

    Measurements of a loop with period T_d are T_d/2 old, because it holds its effort until the next sample; velocity by
    differences of positions is T_d/2 older. A low-pass y += g (x - y) adds T_d (1/g - 1): its time constant T_f for
    g = T_d/(T_f + T_d), and T_f - T_d/2 for g = 1 - exp(-T_d/T_f).

    Attributes:
        position, velocity: of the motor's position and velocity, not negative.
    """

    position: Annotated[float, Entry("of measured positions", "s", "[0, 0.1]", example=0.0)] = 0.0
    velocity: Annotated[float, Entry("of measured velocities", "s", "[0, 0.1]", example=0.0)] = 0.0


NO_FEEDBACK_DELAY = FeedbackDelay()
"""Age for drives that measure without delay, or with an unknown one."""
