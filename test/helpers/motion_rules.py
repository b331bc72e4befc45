# SPDX-License-Identifier: Apache-2.0
"""Rules of generated motions (trajectory, target, stop), holds and measured velocities, from the robot and the record.

Each rule states the specification and shares no code with the loop. SI units, on the link side of the gears.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from loop_rig import Record
from sent_oracle import (
    AIMING,
    COMMANDS,
    FRESH,
    HELD,
    LONGEST_STEP,
    LOST,
    NAMES,
    NOBODY,
    OWN,
    POSITION,
    RECENT,
    STOP,
    STREAM,
    WAITING,
    Finding,
    Marks,
    SentOracle,
    Settings,
    _beyond,
    absurd,
    leaders,
)
from stopping import can_stop

from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import Refusal

JITTER = 0.021
"""Maximum lead of a setpoint, s."""

EFFORT_STEP = 0.5
"""Largest change of a motor's effort in 1 ms of a generated motion, as a fraction of its limit."""

VELOCITY_STEP = 2e-3
"""Maximum velocity change in 1 ms of a generated motion beyond its acceleration, rad/s or m/s: bends of its path."""

STANDING = 0.01
"""Maximum commanded velocity with a constant position, rad/s or m/s."""

BRAKING = 0.05
"""Maximum time of initial accelerations and effort rates in a stop, s."""

OUTLIER = 0.02
"""Largest change of a motor's effort by one wrong velocity sample, as a fraction of its limit."""

OF_MOTORS = ("motor", "effort", "joint effort", "computed")
"""Rules that hold unless a joint brakes harder than its limits, since it would pass the end of its range."""

PENDING = ("step after rejections",)
"""Rules that the present loop does not meet."""


@dataclass
class Inputs(Marks):
    """Inputs before each of N cycles.

    Attributes:
        outlier: one measured velocity is wrong.
        target: target of an arm at rest (N, n), NaN without a target.
        undisturbed: no other input may end a motion.
    """

    outlier: Array
    target: Array
    undisturbed: Array

    @classmethod
    def none(cls, count: int, motors: int = 0, joints: int = 0) -> "Inputs":
        marks = Marks.none(count, motors)
        outlier, undisturbed = np.zeros((2, count), dtype=bool)
        return cls(**vars(marks), outlier=outlier, target=np.full((count, joints), np.nan), undisturbed=undisturbed)


class MotionRules:
    """Rules of the motions of an arm."""

    def __init__(self, oracle: SentOracle) -> None:
        self.oracle = oracle
        self.effort = np.where(np.isfinite(oracle.scale), oracle.scale, 50.0)

    def findings(self, record: Record, settings: Settings, marks: Inputs) -> list[Finding]:
        """Return the worst place of each rule and cycle."""
        if len(record.time) < 2:
            return []
        rules = (self._standing, self._steps, self._limits, self._range, self._overshoot, self._ended, self._outliers)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            rows, wild = _Rows(record, settings, marks, self.oracle), absurd(record)
            found = [x for rule in (*rules, self._after_rejections) for x in rule(rows)]
            found = [x for x in found if not wild[x.cycle]]
            return [x for x in found if not (x.rule.startswith(OF_MOTORS) and self._hurries(rows, x.cycle))]

    def _hurries(self, x: "_Rows", cycle: int) -> bool:
        """Whether a stop leads, and brakes a joint that would pass the end of its range with its full deceleration."""
        if x.leader[cycle] != STOP:
            return False
        q, v, a = x.record.state[x.first[cycle], :3]
        inside = (q >= self.oracle.lower) & (q <= self.oracle.upper)
        return any(
            v[i] and not (inside[i] and can_stop(self.oracle.arm, i, q[i], v[i], a[i], haste=1)) for i in range(len(q))
        )

    # --- Rules ----------------------------------------------------------------------------

    def _standing(self, x: "_Rows") -> Iterator[Finding]:
        """Motors that are sent one position for longer than a gap of a stream are sent no velocity.

        If a loss is only reported (``none``), the last command stays in effect with its velocity.
        """
        still = np.all(np.abs(np.diff(x.theta, axis=0)) <= 1e-12 * (1 + np.abs(x.theta[1:])), axis=1)
        bad = np.append(False, still) & (np.abs(x.rate).max(axis=1) > STANDING) & x.position & (x.h > 0)
        nobody = x.settings.others.get("on_setpoint_loss") == "none" and x.leader == NOBODY
        bad &= ~(np.isin(x.status, (WAITING, LOST)) | nobody)  # drives then hold the last command
        changed = np.append(True, np.diff(x.status) != 0)  # the first command of a stop repeats the last command
        last = np.maximum.accumulate(np.where(bad & ~changed, 0, np.arange(len(bad))))
        passed, cycles = x.clock - x.clock[last], np.arange(len(bad)) - last
        reports = x.settings.others.get("on_setpoint_loss") == "none"
        gap = np.inf if reports else (x.settings.setpoint_timeout or np.inf) + LONGEST_STEP
        allowed = np.where(np.isin(x.status, (FRESH, HELD)), gap, 0.0)
        for k in np.flatnonzero(bad & (cycles > 2) & (passed > allowed)):
            place = int(np.argmax(np.abs(x.rate[k])))
            yield Finding("velocity while standing", int(k), place, float(abs(x.rate[k, place])), STANDING)

    def _steps(self, x: "_Rows") -> Iterator[Finding]:
        """Velocities of a generated motion are integrals of its accelerations; efforts change by less than a share."""
        rows = x.steady[1:] & x.refuses
        h, qd, qdd = x.h[1:, None], x.record.setpoint["qd"], x.record.setpoint["qdd"]
        away = np.abs(np.diff(qd, axis=0) - h * 0.5 * (qdd[1:] + qdd[:-1]))
        snap = np.abs(x.record.setpoint["qdddd"])
        allowed = h * np.abs(np.diff(qdd, axis=0)) + VELOCITY_STEP * np.maximum(1e3 * h, 1)
        allowed += h**3 / 12 * np.maximum(snap[1:], snap[:-1])
        yield from x.named("velocity step", _beyond("", np.where(rows[:, None], away, 0), allowed, first=1))
        largest = x.bound(self.oracle.speed, np.abs(x.rate) + BRAKING * np.abs(x.record.command["motor_acceleration"]))
        step = np.where(rows[:, None], np.abs(np.diff(x.theta, axis=0)), 0)
        yield from x.named("motor step", _beyond("", step, 1.003 * largest[1:] * h + 1e-6, first=1))
        if x.settings.feedback:
            return
        friction = np.array([float(np.max(law.static)) for law in self.oracle.friction])
        sent = np.maximum(np.abs(x.effort[1:]), np.abs(x.effort[:-1]))
        allowed = EFFORT_STEP * self.oracle.scale * np.maximum(1e3 * h, 1) + 2 * friction + self.oracle.loss * sent
        step = np.where(rows[:, None] & ~x.carries[1:, None], np.diff(x.effort, axis=0), 0)
        beside = np.pad(step, ((1, 1), (0, 0)))  # an effort that changes on is no step
        allowed += np.maximum(np.maximum(np.sign(step) * beside[:-2], np.sign(step) * beside[2:]), 0)
        yield from x.named("effort step", _beyond("", np.abs(step), allowed, first=1))

    def _limits(self, x: "_Rows") -> Iterator[Finding]:
        """Each command of a generated motion is within limits, or within its initial values."""
        rows = (x.own & x.refuses)[:, None]
        o, y, command = self.oracle, x.record.setpoint, x.record.command
        none = np.zeros_like(x.rate)
        for name, value, limit, change in (
            ("joint velocity", y["qd"], o.joint_velocity, y["qdd"]),
            ("motor speed", x.rate, o.speed, command["motor_acceleration"]),
            ("joint effort", command["tau"], o.joint_effort, command["taud"]),
            ("computed motor effort", command["motor_effort"], o.effort, none),
            ("computed effort rate", command["taud"], o.joint_effort_rate, command["taudd"]),
        ):
            value = np.abs(value)
            allowed = x.bound(limit, value + BRAKING * np.abs(change)) * (1 + 1e-3) + 1e-6
            yield from x.named(f"{name} over limit", _beyond("", np.where(rows, value, 0), allowed))

    def _range(self, x: "_Rows") -> Iterator[Finding]:
        """A setpoint stays within the range of a joint, and a generated motion that begins there and can stop there."""
        q = x.record.setpoint["q"]
        beyond = np.maximum(np.maximum(q - self.oracle.upper, self.oracle.lower - q), 0)
        begin = beyond[np.where(x.own, x.first, np.maximum(np.arange(len(q)) - 1, 0))]
        follows = (x.leader == STREAM) & x.position & x.regular & (not x.permissive)
        rows = ((x.own | follows) & x.refuses & ~x.restarted)[:, None] & (begin == 0)
        for found in _beyond("", np.where(rows, beyond, 0), np.full(beyond.shape, 1e-6)):
            k, joint = found.cycle, found.place
            if not x.own[k] or can_stop(self.oracle.arm, joint, *x.record.state[x.first[k], :3, joint]):
                yield from x.named("beyond range", iter([found]))

    def _overshoot(self, x: "_Rows") -> Iterator[Finding]:
        """An arm at rest that is sent one target stays between both."""
        q = x.record.setpoint["q"]
        for k in np.flatnonzero(np.isfinite(x.marks.target).any(axis=1)):
            begins = np.flatnonzero(x.leader[k : k + 3] == AIMING)
            if not k or not len(begins) or not x.rests[k - 1] or np.any(q[k + begins[0] - 1] != q[k - 1]):
                continue
            first = k + int(begins[0])
            others = ~x.marks.undisturbed | (x.marks.posted & (np.arange(len(q)) > first))
            others |= x.record.numbers["touched"] > 0  # contact makes the arm retract
            ends = np.flatnonzero((x.leader[first:] != AIMING) | others[first:])
            rows = slice(first, first + int(ends[0]) if len(ends) else len(q))
            start, target = q[k - 1], np.where(np.isfinite(x.marks.target[k]), x.marks.target[k], q[k - 1])
            low, high = np.minimum(start, target), np.maximum(start, target)
            over = np.maximum(np.maximum(q[rows] - high, low - q[rows]), 0).max(axis=0)
            yield from _beyond("overshoot", over[None], np.full((1, len(over)), 1e-6), first=int(k))

    def _ended(self, x: "_Rows") -> Iterator[Finding]:
        """A generated motion that nothing disturbs does not end by its own limits."""
        of_commands = np.isin(x.record.code, [Refusal[name] for name in COMMANDS]) & ~(x.record.given | x.marks.posted)
        moving = (x.leader == AIMING) & x.marks.undisturbed & x.refuses & x.position
        for k in 1 + np.flatnonzero(moving[:-1] & moving[np.maximum(np.arange(len(moving) - 1) - 1, 0)]):
            if of_commands[k] and x.marks.undisturbed[k]:
                yield Finding("target is broken off", int(k), 0, float(x.record.code[k]), 0.0)

    def _outliers(self, x: "_Rows") -> Iterator[Finding]:
        """One wrong sample of a velocity does not change efforts."""
        for k in np.flatnonzero(x.marks.outlier):
            if k < 12 or not x.valid[k - 12 : k + 1].all() or not x.regular[k - 10 : k + 1].all():
                continue
            if np.any(np.diff(x.record.numbers["mode"][k - 10 : k + 1])):
                continue
            changes = np.abs(np.diff(x.effort[k - 10 : k + 1], axis=0))
            if x.position[k]:  # a motion plans changes
                planned = x.record.command["motor_effort"][k - 10 : k + 1]
                beside = np.abs(np.diff(x.effort[k - 10 : k + 1] - planned, axis=0))
                changes = np.minimum(changes, beside)
            allowed = 3 * changes[:-1].max(axis=0) + OUTLIER * self.effort
            yield from _beyond("velocity outlier", changes[-1:], allowed[None], first=int(k))

    def _after_rejections(self, x: "_Rows") -> Iterator[Finding]:
        """Time with a held command allows no larger step: a command follows by one period of its stream."""
        since = x.clock[1:] - x.clock[np.maximum.accumulate(np.where(x.record.given, np.arange(len(x.clock)), 0))[:-1]]
        since = np.clip(since, x.h[1:], LONGEST_STEP)[:, None] + JITTER
        rows = (x.leader[1:] == STREAM) & x.record.given[1:] & (x.record.code[1:] <= 0) & x.regular[1:] & x.refuses
        rows &= (not x.permissive) & x.position[1:] & (x.record.code[:-1] > 0)
        step = np.where(rows[:, None], np.abs(np.diff(x.theta, axis=0)), 0)
        yield from _beyond(PENDING[0], step, 1.003 * self.oracle.speed * since + 1e-6, first=1)
        if not x.settings.feedback:
            step = np.where(rows[:, None], np.abs(np.diff(x.record.sent["sent_effort"], axis=0)), 0)
            rate = np.where(np.isfinite(self.oracle.joint_effort_rate), self.oracle.joint_effort_rate, np.inf)
            yield from _beyond(PENDING[0], step, 1.003 * rate * since + 1e-6, first=1)


class _Rows:
    """Quantities of a record that several rules need, for N cycles.

    Attributes:
        theta, rate, effort: sent to motors (N, m).
        h: time since the cycle before, at most LONGEST_STEP, s; ``clock`` sums it.
        leader: source of the command.
        own: a generated motion in position mode; ``steady`` if it goes on from the cycle before.
        first: cycle of the first command of the same motion.
        begin: cycle of the state in which it begins: the last command before, or ``first`` if the arm was measured.
    """

    def __init__(self, record: Record, settings: Settings, marks: Inputs, oracle: SentOracle) -> None:
        self.record, self.settings, self.marks = record, settings, marks
        self.theta, self.rate, self.effort = (
            oracle.si(record, f"drive_{name}") for name in ("position", "velocity", "effort")
        )
        self.h = np.clip(np.diff(record.time, prepend=record.time[0]) * 1e-9, 0, LONGEST_STEP)
        self.clock = np.cumsum(self.h)
        numbers = record.numbers
        self.status, self.valid = numbers["status"], numbers["valid"] > 0
        self.position = (numbers["mode"] == POSITION) & self.valid
        self.refuses = settings.limits == "refuse"
        self.permissive = bool(settings.others.get("permissive"))
        self.leader = leaders(record)
        changed = np.append(True, np.diff(record.numbers["mode"]) != 0)
        disturbed = marks.restarted | marks.moved | changed
        passed = np.diff(record.time, prepend=record.time[0] - 1)
        self.regular = ~disturbed & (passed > 0) & (passed < 1e9 * RECENT)  # after a pause the arm is located
        self.own = np.isin(self.leader, OWN) & self.position
        same = np.append(False, self.leader[1:] == self.leader[:-1])
        self.steady = self.own & np.append(False, self.own[:-1]) & same & self.regular & ~marks.posted
        q, qd = record.setpoint["q"], record.setpoint["qd"]
        away = np.abs(np.diff(q, axis=0) - self.h[1:, None] / 2 * (qd[1:] + qd[:-1])).max(axis=1) > 1e-6
        restarted = marks.restarted & np.append(True, away | ~self.valid[:-1])  # else the motion before is stopped
        self.first = np.maximum.accumulate(np.where(same & ~restarted, 0, np.arange(len(same))))
        self.restarted = restarted[self.first] & self.own
        before = np.maximum(self.first - 1, 0)
        self.begin = np.where(self.restarted | ~self.position[before], self.first, before)
        self.rests = np.all([record.setpoint[name] == 0 for name in STATE_NAMES[1:]], axis=(0, 2)) & self.position
        P = record.setpoint["P"]
        self.carries = np.append(False, np.any(np.diff(P, axis=0), axis=1)) | np.any(record.setpoint["Pd"], axis=1)

    def bound(self, limit: Array, values: Array) -> Array:
        """Return limits (N, …) of a generated motion: ``limit``, or its initial value."""
        begun = values[self.begin]
        begun[self.restarted] = 0
        return np.maximum(np.broadcast_to(limit, values.shape), begun)

    def named(self, rule: str, findings: Iterator[Finding]) -> Iterator[Finding]:
        """Add the source of the command to the name of the rule."""
        for x in findings:
            yield x._replace(rule=f"{rule}, {NAMES[int(self.leader[x.cycle])]}")
