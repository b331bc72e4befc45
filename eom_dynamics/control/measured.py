# SPDX-License-Identifier: Apache-2.0
"""Measured motion: joints and motors from ``sensor_msgs/JointState``, and tolerances of control_msgs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import MOTION, Array
from ..exceptions import StateError
from .control_loop import ControlLoop
from .joint_order import shown_name
from .settings import LONGEST_GAP

TAKEN, STARTED, NOT_FINITE, STALE, INCONSISTENT, TOO_LARGE, MISSING = range(7)
"""Result of a sensor sample, eom::Sample."""

SAMPLE_REASONS = {
    NOT_FINITE: "a sensor is not finite",
    STALE: "time does not increase",
    INCONSISTENT: "position and velocity disagree, or are beyond limits: a jump, a stale or swapped sensor, or units",
    TOO_LARGE: "the effort is more than twice the joint's limit: a failed or swapped sensor",
    MISSING: "measured efforts are missing; publish them, or set external_effort.sensors",
}
"""Reasons of rejected samples."""


def sample_reason(code: int, joint_names: Sequence[str]) -> str:
    """Reason of a rejected sample, by the code of eom_loop_sense(); "" if it was accepted."""
    joint, kind = divmod(int(code), 8)
    at = f"{joint_names[joint]}: " if kind in (INCONSISTENT, TOO_LARGE) else ""
    return at + SAMPLE_REASONS[kind] if kind in SAMPLE_REASONS else ""


MEASURED_TOPICS = ("joint_states", "motor_states")
"""Topics of measured links and motors."""

PRESENT = 1_000_000_000
"""Maximum age of a present position, ns."""

# Maximum step of a position, rad or m, and maximum speed, rad/s or m/s, of real motion.
_JUMP, _FASTEST = 0.1, 10.0


class MeasuredJoint(NamedTuple):
    """Measured state of a joint or motor; NaN if not measured."""

    position: float  # rad or m, or the unit of the drive
    velocity: float
    effort: float
    time: int  # ns


_FIELDS = MeasuredJoint._fields[:3]


def measured_joints(state: Any, time: int) -> dict[str, MeasuredJoint]:
    """Joints of a message by name, with its ``time``, ns. Several publishers may each provide some of the joints.

    Raises:
        StateError: a name is repeated, or a field has a wrong length.
    """
    count, columns = len(state.name), []
    if len(set(state.name)) < count:
        raise StateError("a name is listed twice")
    for field in _FIELDS:
        values = getattr(state, field)
        if len(values) not in (0, count):
            raise StateError(f"{field} has {len(values)} entries, must have {count}")
        columns.append(values if len(values) else [math.nan] * count)
    return {name: MeasuredJoint._make((*row, time)) for name, *row in zip(state.name, *columns, strict=True)}


class JointStates:
    """Latest state of each joint by name, from any number of publishers, with arrival times.

    A position that jumps comes from a wrong sample, or from an arm that was moved between two messages. It is accepted
    once the next message of the joint agrees.
    """

    def __init__(self) -> None:
        self.joints: dict[str, MeasuredJoint] = {}
        self._doubted: dict[str, MeasuredJoint] = {}

    def take(self, joints: Mapping[str, MeasuredJoint]) -> None:
        """Process the joints of a message that have a position."""
        for name, joint in joints.items():
            if not math.isfinite(joint.position):
                continue
            last, doubted = self.joints.get(name), self._doubted.pop(name, None)
            if last and _jumps(last, joint) and not (doubted and not _jumps(doubted, joint)):
                self._doubted[name] = joint
            else:
                self.joints[name] = joint


def _jumps(last: MeasuredJoint, joint: MeasuredJoint) -> bool:
    """True if the joint cannot have moved so far since ``last``, less than 0.1 s before."""
    time = joint.time - last.time
    return 0 <= time < LONGEST_GAP and abs(joint.position - last.position) > _JUMP + _FASTEST * 1e-9 * time


def present_positions(joints: Mapping[str, MeasuredJoint], names: Sequence[str], now: int) -> tuple[Array, int]:
    """Present positions (n,) at ``now``, ns, rad or m, and the age of the oldest position, ns.

    Raises:
        StateError: a position is unknown, or older than :data:`PRESENT`.
    """
    if unknown := [shown_name(name) for name in names if name not in joints]:
        raise StateError(f"joint_states: the position of {', '.join(unknown)} is not known yet")
    oldest = min(names, key=lambda name: joints[name].time)
    if (age := now - joints[oldest].time) > PRESENT:
        raise StateError(f"joint_states: the position of {shown_name(oldest)} is {1e-9 * age:.3g} s old")
    return np.array([joints[name].position for name in names]), age


class MeasuredMotion:
    """Samples of links and motors for a control loop, at the time of the older message.

    The loop uses a sample for 0.1 s.
    """

    def __init__(self, loop: ControlLoop, *, links: bool, motors: bool) -> None:
        self._loop, arm = loop, loop.arm
        if motors:
            loop.table.prepare_drive_states()
        rows = (("q", "qd", "tau"), ("motor_position", "motor_velocity", "motor_effort"))
        parts = zip(MEASURED_TOPICS, (links, motors), (arm.robot.joint_names, arm.motor_names), rows, strict=True)
        # Names, vectors of the loop, and the latest state of each joint or motor, by topic.
        self._parts = {
            topic: (names, loop.vectors("sensed", dict.fromkeys(vectors, len(names))), dict[str, MeasuredJoint]())
            for topic, wanted, names, vectors in parts
            if wanted
        }
        self._last = -(2**62)

    def take(self, topic: str, joints: Mapping[str, MeasuredJoint], now: int) -> bool:
        """Process the joints of a message at ``now``, ns; returns True if the loop has accepted a new sample.

        Raises:
            StateError: a number is not finite, the message is too old or not newer than the previous message, or the
                loop has rejected the sample.
        """
        names, _, known = self._parts.get(topic, ((), {}, {}))
        taken = {name: joints[name] for name in names if name in joints}
        for name, joint in taken.items():
            if when := _untimely(joint.time, now):
                raise StateError(f"its stamp is {when}")
            for field, value in zip(_FIELDS[:2], joint, strict=False):
                if not math.isfinite(value):
                    raise StateError(f"{field} of {shown_name(name)} is {value}")
            if name in known and joint.time <= known[name].time:
                raise StateError("its stamp repeats or goes back: a stale publisher, or two of the same joints")
        known.update(taken)
        return bool(taken) and self._sample()

    def missing(self, now: int) -> str:
        """Describe the missing measurements at ``now``, ns; "" if complete."""
        texts = []
        for topic, (names, _, known) in self._parts.items():
            if unknown := [name for name in names if name not in known]:
                texts.append(f"{topic} lacks {', '.join(unknown)}")
            elif when := _untimely(min(joint.time for joint in known.values()), now):
                texts.append(f"{topic} is {when}")
        return "; ".join(texts)

    def _sample(self) -> bool:
        if any(len(known) < len(names) for names, _, known in self._parts.values()):
            return False
        times = [joint.time for *_, known in self._parts.values() for joint in known.values()]
        time = min(times)
        if time <= self._last or max(times) - time > LONGEST_GAP:
            return False
        self._last, sensors = time, 0
        for topic, (names, vectors, known) in self._parts.items():
            position, velocity, effort = vectors.values()
            *rows, ahead = np.array([(*known[name][:3], known[name].time - time) for name in names]).T
            # The newer positions are extrapolated backward by their velocities.
            position[:] = rows[0] - 1e-9 * ahead * rows[1]
            velocity[:], bit = rows[1], 1 + MEASURED_TOPICS.index(topic)
            has_effort = bool(np.isfinite(rows[2]).all())
            effort[:] = rows[2] if has_effort else 0.0
            sensors |= bit | (4 * bit) * has_effort
        code = self._loop.sense(time, sensors)
        if reason := sample_reason(code, self._loop.arm.robot.joint_names):
            raise StateError(self._loop.text("sample") if code % 8 == INCONSISTENT else reason)
        return True


def _untimely(time: int, now: int) -> str:
    """Describe a sample stamp that is too far from ``now``, ns; "" if it is usable."""
    age = 1e-9 * (now - time)
    if abs(age) <= 1e-9 * LONGEST_GAP:
        return ""
    when = f"{age:.3g} s old" if age > 0 else f"{-age:.3g} s ahead"
    return f"{when}, at most {1e-9 * LONGEST_GAP:g} s counts: clocks differ, or it came or was read late"


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
    def read(
        cls, field: str, entries: Sequence[Any], names: Sequence[str], default: Mapping[str, float] | None = None
    ) -> JointTolerances:
        """Read a field of ``control_msgs/JointTolerance``: a negative value means no tolerance, and zero the default.

        Args:
            default: position tolerance by joint, rad or m, for joints without an entry; 0: unlimited.

        Raises:
            StateError: a joint is unknown, or a number is not finite.
        """
        allowed = np.full((len(_QUANTITIES), len(names)), np.inf)
        for name, value in (default or {}).items():
            if value > 0:
                allowed[0, names.index(name)] = value
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
        """True if there is a tolerance."""
        return bool(np.isfinite(self.allowed).any())

    def violation(self, error: Sequence[Array]) -> str:
        """Describe the worst violation; "" if there is no violation.

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
