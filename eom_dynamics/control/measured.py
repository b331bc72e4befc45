# SPDX-License-Identifier: Apache-2.0
"""Measured motion: joints and motors from ``sensor_msgs/JointState``, and tolerances of control_msgs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arguments import first_not_finite
from ..arrays import MOTION, Array
from ..exceptions import StateError
from .control_loop import ControlLoop
from .joint_order import shown_name
from .settings import LONGEST_GAP

TAKEN, STARTED, NOT_FINITE, STALE, INCONSISTENT, TOO_LARGE, MISSING = range(7)
"""Outcome of a sample: eom::Sample."""

SAMPLE_REASONS = {
    NOT_FINITE: "a sensor is not finite",
    STALE: "time does not increase",
    INCONSISTENT: "position and velocity disagree: a jump, or a stale or swapped sensor",
    TOO_LARGE: "the effort is more than twice the joint's limit: a failed or swapped sensor",
    MISSING: "efforts that external efforts are from are missing: publish them, or set other sensors",
}
"""Why one was left out."""


def sample_reason(code: int, joint_names: Sequence[str]) -> str:
    """Why a sample was left out, by the code of eom_loop_sense(); empty if it was not."""
    joint, kind = divmod(int(code), 8)
    at = f"{joint_names[joint]}: " if kind in (INCONSISTENT, TOO_LARGE) else ""
    return at + SAMPLE_REASONS[kind] if kind in SAMPLE_REASONS else ""


# Largest step of a position, rad or m, and speed, rad/s or m/s, that are motion.
_JUMP, _FASTEST = 0.1, 10.0


class MeasuredJoint(NamedTuple):
    """Measured state of a joint."""

    position: float  # rad or m
    velocity: float  # NaN if it is not measured
    time: int  # of its arrival, ns


def measured_joints(state: Any, time: int) -> dict[str, MeasuredJoint]:
    """Joints of a message that has arrived at a time, ns, by name; several publishers may each provide some."""
    count = len(state.name)
    rates = state.velocity if len(state.velocity) == count else [math.nan] * count
    rows = zip(state.name, state.position, rates, strict=False)
    return {name: MeasuredJoint(position, rate, time) for name, position, rate in rows if math.isfinite(position)}


class JointStates:
    """Latest state of each joint by name, from one publisher or several.

    A position that jumps is a wrong sample, or of an arm that was moved between two messages; it counts once the next
    message of its joint agrees.
    """

    def __init__(self) -> None:
        self.joints: dict[str, MeasuredJoint] = {}
        self._doubted: dict[str, MeasuredJoint] = {}

    def take(self, state: Any, time: int) -> None:
        """Take a message that has arrived at a time, ns."""
        for name, joint in measured_joints(state, time).items():
            last, doubted = self.joints.get(name), self._doubted.pop(name, None)
            if last and _jumps(last, joint) and not (doubted and not _jumps(doubted, joint)):
                self._doubted[name] = joint
            else:
                self.joints[name] = joint


def _jumps(last: MeasuredJoint, joint: MeasuredJoint) -> bool:
    """Whether a joint is further from where it was, less than 0.1 s before, than it can move."""
    time = joint.time - last.time
    return 0 <= time < LONGEST_GAP and abs(joint.position - last.position) > _JUMP + _FASTEST * 1e-9 * time


def positions_of(joints: Mapping[str, MeasuredJoint], names: Sequence[str]) -> Array:
    """Positions (n,), rad or m; StateError if one is not known."""
    if unknown := [shown_name(name) for name in names if name not in joints]:
        raise StateError(f"joint_states: the position of {', '.join(unknown)} is not known yet")
    return np.array([joints[name].position for name in names])


class JointSignals:
    """Latest position, velocity and effort of each joint or motor; several publishers may each provide some of them.

    Attributes:
        values: (3, n), NaN where they are not known; efforts may stay so.
        times: (n,) of them, ns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self.values = np.full((3, len(names)), np.nan)
        self.times = np.full(len(names), -(2**62))
        # Names of the last message, and the places of the known ones, there and here.
        self._given: list[str] = []
        self._there = self._here = np.zeros(0, dtype=int)

    @property
    def unknown(self) -> list[str]:
        """Names without position and velocity so far."""
        return [name for name, place in self._places.items() if np.isnan(self.values[0, place])]

    def update(self, message: Any, time: int) -> bool:
        """Take a message of a time, ns; return whether it has any of the names.

        Raises:
            StateError: a name is listed twice, a field has a wrong length, a number is not finite, or the time does not
                increase; then the message has no effect.
        """
        if message.name != self._given:
            known = [(k, self._places[name]) for k, name in enumerate(message.name) if name in self._places]
            self._there, self._here = np.array(known, dtype=int).reshape(-1, 2).T
            self._given = list(message.name)
        there, here, count = self._there, self._here, len(self._given)
        if not len(here):
            return False
        if len(set(here.tolist())) < len(here):
            raise StateError("a name is listed twice")
        rows = np.full((3, len(here)), np.nan)
        for k, field in enumerate(("position", "velocity", "effort")):
            given = getattr(message, field)
            if len(given) == count:
                rows[k] = np.asarray(given)[there]
            elif len(given) or field != "effort":
                raise StateError(f"{field} has {len(given)} entries, must have {count}")
        if bad := first_not_finite(rows[:2]):
            field, name = ("position", "velocity")[bad[0]], self._given[there[bad[1]]]
            raise StateError(f"{field} of {shown_name(name)} is {rows[bad]}")
        if (self.times[here] >= time).any():
            raise StateError("its stamp repeats or goes back: a stale publisher, or two of the same joints")
        self.values[:, here], self.times[here] = rows, time
        return True


class MeasuredMotion:
    """Samples of links and motors for a control loop, at the time of the older one of them.

    Attributes:
        links, motors: what is measured, None where it is not.
    """

    def __init__(self, loop: ControlLoop, *, links: bool, motors: bool) -> None:
        self._loop, arm = loop, loop.arm
        if motors:
            loop.table.prepare_drive_states()
        self.links = JointSignals(arm.robot.joint_names) if links else None
        self.motors = JointSignals(arm.motor_names) if motors else None
        n, m = arm.robot.n, len(arm.motor_names)
        names = (("q", "qd", "tau"), ("motor_position", "motor_velocity", "motor_effort"))
        self._parts = [
            (part, loop.vectors("sensed", dict.fromkeys(rows, size)), motion, effort)
            for part, rows, size, motion, effort in ((self.links, names[0], n, 1, 4), (self.motors, names[1], m, 2, 8))
            if part is not None
        ]
        self._last = -(2**62)

    def sample(self) -> bool:
        """Give the loop a new sample, if there is one; return whether it took one, StateError if it left one out."""
        times = [part.times for part, *_ in self._parts]
        time = min(int(x.min()) for x in times)
        if time <= self._last or max(int(x.max()) for x in times) - time > LONGEST_GAP:
            return False
        self._last, sensors = time, 0
        for part, vectors, motion, effort in self._parts:
            position, velocity, efforts = vectors.values()
            # Newer ones are moved back by their velocities.
            position[:] = part.values[0] + 1e-9 * (time - part.times) * part.values[1]
            velocity[:] = part.values[1]
            has_effort = bool(np.isfinite(part.values[2]).all())
            efforts[:] = part.values[2] if has_effort else 0.0
            sensors |= motion | effort * has_effort
        if reason := sample_reason(self._loop.sense(time, sensors), self._loop.arm.robot.joint_names):
            raise StateError(reason)
        return True


_QUANTITIES = MOTION[:3]


@dataclass(frozen=True)
class JointTolerances:
    """Allowed deviations by quantity.

    Attributes:
        names: joints.
        allowed: (3, n), of position, velocity and acceleration; infinite without a tolerance.
    """

    names: tuple[str, ...]
    allowed: Array

    @classmethod
    def read(cls, field: str, entries: Sequence[Any], names: Sequence[str], default: float = 0.0) -> JointTolerances:
        """Read a field of ``control_msgs/JointTolerance``: a negative value means no tolerance, and zero the default.

        Args:
            default: tolerance of positions, rad or m, unless an entry has another one; 0 for none.

        Raises:
            StateError: a joint is unknown, or a number is not finite.
        """
        allowed = np.full((len(_QUANTITIES), len(names)), np.inf)
        if default > 0:
            allowed[0] = default
        for k, entry in enumerate(entries):
            if entry.name not in names:
                raise StateError(f"{field}[{k}]: the robot has no joint {shown_name(entry.name)}")
            for i, quantity in enumerate(_QUANTITIES):
                value = getattr(entry, quantity)
                if not np.isfinite(value):
                    raise StateError(f"{field}[{k}].{quantity} (joint {shown_name(entry.name)}) is {value}")
                if value:
                    allowed[i, names.index(entry.name)] = value if value > 0 else np.inf
        return cls(tuple(names), allowed)

    @property
    def any(self) -> bool:
        """Whether there is a tolerance."""
        return bool(np.isfinite(self.allowed).any())

    def violation(self, error: Sequence[Array]) -> str:
        """Describe the worst violation; empty if there is none.

        Args:
            error: deviations (n,) of position, velocity and acceleration, or the first of them; NaN if unknown.
        """
        rows = np.abs(np.array([*error, *[np.full(len(self.names), np.nan)] * (len(_QUANTITIES) - len(error))]))
        with np.errstate(over="ignore"):  # beyond any tolerance
            ratio = np.nan_to_num(rows / self.allowed, nan=0.0, posinf=np.inf)
        i, joint = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        if not ratio[i, joint] > 1:
            return ""
        return (
            f"{_QUANTITIES[i]} of {self.names[joint]} deviates by {rows[i, joint]:.3g}, tolerance "
            f"{self.allowed[i, joint]:.3g}"
        )
