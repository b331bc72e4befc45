# SPDX-License-Identifier: Apache-2.0
"""Oracle of drive commands: bounds by the robot's parameters alone, written independently of the control loop.

Every check is of the record of a run as a whole (loop_rig.Record), in SI units on the link side of the gears.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from loop_rig import Record

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import Refusal

LONGEST_STEP = 0.02
"""Longest step of time of a motion that the loop makes, s."""

ELSEWHERE = 0.05 * (1 + 1e-9)
"""Distance of a measured arm from its command beyond which it has lost tracking, rad or m."""

RECENT = 0.1
"""Start of a pause, s: the longest time between two setpoints without a timeout."""

ABSURD = {"q": 1e6, "qd": 10.0, "qdd": 1e4, "qddd": 1e6, "qdddd": 1e8}
"""Positions and rates of a setpoint, SI units, that are impossible for an arm; a node refuses the positions."""

STAMPS_AHEAD = 0.021
"""Maximum lead of stamps over their arrival, with jitter, s."""

CHANGE = 0.02
"""Maximum effort change of a motor at a change of the command source, relative to its limit."""

FRESH, HELD, STOPPING, WAITING, LOST = range(5)
POSITION, IMPEDANCE, GRAVITY = range(3)

REFUSALS = (
    "not_finite",
    "over_limits",
    "too_old",
    "suspect_stamp",
    "jump",
    "motor_step",
    "cannot_stop",
    "far_from_hold",
)
"""Counts of setpoints."""

COMMANDS = ("over_limits", "motor_step", "not_finite", "far_beyond_limits")
"""Counts of commands, also of motions of the loop."""

NOBODY, STREAM, PLAYING, AIMING, STOP, IMPEDANT, LED = range(7)
"""Sources that lead."""

OWN = (PLAYING, AIMING, STOP)
"""Sources whose motion the loop generates."""


class Finding(NamedTuple):
    """Failed check: cycle, motor or joint, value and bound."""

    rule: str
    cycle: int
    place: int
    value: float
    bound: float

    def __str__(self) -> str:
        return f"cycle {self.cycle}: {self.rule} of {self.place}: {self.value:.6g}, bound {self.bound:.6g}"


@dataclass
class Marks:
    """Events before each of N cycles.

    Attributes:
        restarted: the loop was restarted.
        moved: a measured position has jumped.
        stop_asked: a stop was requested.
        jumped: the clock jumped, or the process stalled.
        posted: a target, a trajectory or a payload was sent, and may be refused.
        lost: setpoints were reported lost.
        measured: measured motor positions (N, m), SI units, NaN without measurement.
    """

    restarted: Array
    moved: Array
    stop_asked: Array
    jumped: Array
    posted: Array
    lost: Array
    measured: Array

    @classmethod
    def none(cls, count: int, motors: int = 0) -> "Marks":
        return cls(*(np.zeros(count, dtype=bool) for _ in range(6)), np.full((count, motors), np.nan))

    def first(self, count: int) -> "Marks":
        return Marks(*(row[:count] for row in vars(self).values()))


@dataclass
class Settings:
    """Settings of the loop that bounds depend on.

    Attributes:
        limits: policy.
        setpoint_timeout: s, 0 for none.
        feedback: whether gains of motors or links are not zero.
        start_tolerance: rad or m.
    """

    limits: str = "refuse"
    setpoint_timeout: float = 0.1
    feedback: bool = False
    start_tolerance: float = 0.01
    others: dict[str, object] = field(default_factory=dict)


class SentOracle:
    """Bounds of drive commands.

    Attributes:
        own_effort: maximum effort of each motor by its own limits (m,), infinite without limits.
        effort: maximum effort by the limits of motor and joint, through the transmission.
        pairs: joints with two motors; their efforts count together.
        speed: maximum speed of motors by their own limits (m,).
        joint_velocity, joint_effort, joint_effort_rate: limits of joints (n,).
        inertia, stiffness: of the rotors and of the springs at rest, by motor (m,).
        friction: the law of each motor.
        loss: maximum relative effort change of each motor at a sign change of its power (m,).
    """

    def __init__(self, arm: ElasticArm) -> None:
        robot, self.arm = arm.robot, arm
        joints = robot.independent_joints
        self.motor_joint = np.asarray(arm.motor_joint)
        self.joint_velocity, self.joint_effort, self.joint_effort_rate, self.lower, self.upper = (
            np.array([getattr(joint.limits, name) for joint in joints])
            for name in ("velocity", "effort", "effort_rate", "lower", "upper")
        )
        self.acceleration = np.array([joint.limits.acceleration for joint in joints])
        of_motor = [joints[i] for i in self.motor_joint]
        ratio = np.abs([joint.gear_ratio for joint in of_motor])
        motors = [joint.actuator.motor for joint in of_motor]

        def number(name: str) -> Array:
            return np.array([float(getattr(motor, f"{name}_limit")) for motor in motors])

        with np.errstate(invalid="ignore"):
            constant = np.nan_to_num([float(motor.torque_constant) for motor in motors])
            current = np.where(np.isfinite(number("current")), number("current") * constant, np.inf)
        self.own_effort = np.minimum(number("torque"), current) * ratio
        self.speed = number("speed") / ratio
        m = len(motors)
        self.loads = np.array(arm.side.motor_loads(list(np.eye(m)))).T  # rows: motors, columns: springs of motors
        self.sides = np.array(arm.side.joint_sides(list(np.eye(m)))).T
        if not np.allclose(self.loads @ np.ones(m), np.array(arm.side.motor_loads([1.0] * m))):
            self.loads, self.sides = self.loads.T, self.sides.T
        count = np.bincount(self.motor_joint, minlength=robot.n)
        self.pairs = [joint for joint in range(robot.n) if count[joint] > 1]
        by_joint = (
            np.abs(self.loads) @ np.where(np.isfinite(self.joint_effort), self.joint_effort, 1e300)[self.motor_joint]
        )
        derived = np.where(by_joint < 1e200, by_joint, np.inf)
        derived[count[self.motor_joint] > 1] = np.inf  # of the pair
        self.effort = np.where(np.isfinite(self.own_effort), self.own_effort, derived)
        self.scale = np.full(self.effort.shape, np.inf)  # of a change of leaders
        finite = np.isfinite(self.effort)
        self.scale[finite] = self.effort[finite]
        own = np.isfinite(self.joint_effort[self.motor_joint]) & ~finite
        self.scale[own] = self.joint_effort[self.motor_joint][own]
        self.stiffness = np.asarray(arm.side.rest_stiffness, dtype=float)[self.motor_joint]
        self.inertia = np.asarray(arm.motor_inertia, dtype=float)
        self.friction = [joint.actuator.friction for joint in of_motor]
        efficiency = np.array([float(joint.actuator.gear.efficiency) for joint in of_motor])
        self.loss = 1 / efficiency - efficiency
        scales = [
            joint.drive.scales(joint.gear_ratio, float(joint.actuator.motor.torque_constant)) for joint in of_motor
        ]
        self.units = {
            "drive_position": (np.array([x.position for x in scales]), np.array([x.offset for x in scales])),
            "drive_velocity": (np.array([x.velocity for x in scales]), 0.0),
            "drive_effort": (np.array([x.effort for x in scales]), 0.0),
        }

    def si(self, record: Record, name: str) -> Array:
        """Drive commands (N, m) in SI units."""
        scale, offset = self.units[name]
        return (record.sent[name] - offset) / scale

    def predicted(self, record: Record, time: float | Array = 1e-3) -> Array:
        """Change of the efforts of motors (N, m) in a time (N,) after each command, s, by its own rates."""
        h = np.broadcast_to(time, record.time.shape)[:, None]
        torque = np.abs(record.command["taud"]) * h + np.abs(record.command["taudd"]) * h**2 / 2
        spin = np.abs(record.setpoint["qddd"]) * h + np.abs(record.setpoint["qdddd"]) * h**2 / 2
        by_spring = torque[:, self.motor_joint] @ np.abs(self.loads).T
        return by_spring + self.inertia * (spin[:, self.motor_joint] @ np.abs(np.linalg.inv(self.sides)).T)

    # --- Checks -------------------------------------------------------------------------

    def findings(self, record: Record, settings: Settings, marks: Marks | None = None) -> list[Finding]:
        """Failed checks of a record, the worst place for each rule and cycle."""
        marks = marks or Marks.none(len(record.time))
        # Cycles after impossible numbers, which are followed if limits are only reported.
        for k in np.flatnonzero(absurd(record)):
            marks.restarted[k : k + 400] = True
        # After a pause, the arm is held at its measured position, as after a restart.
        waits = record.numbers["status"] == WAITING
        marks.restarted[1:] |= waits[1:] & ~waits[:-1]
        if marks.measured.shape[1]:  # also if the arm is measured elsewhere during a pause
            # Springs of a command have the load at the command, springs of a measured arm the load there.
            theta = self.si(record, "drive_position")
            deflection = theta @ self.sides.T - record.setpoint["q"][:, self.motor_joint]
            loads = np.abs(np.diff(deflection, axis=0, prepend=deflection[:1]))
            there = np.all(np.abs((theta - marks.measured) @ self.sides.T) < ELSEWHERE + loads, axis=1)
            moves = np.any(np.abs(np.diff(record.setpoint["q"], axis=0)) > 1e-8, axis=1)
            marks.restarted[1:] |= waits[1:] & waits[:-1] & there[1:] & moves
        found: list[Finding] = []
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for check in (self._finite, self._efforts, self._steps, self._joint_steps, self._leaders, self._own_motion):
                found += check(record, settings, marks)
            for other in (self._range, self._room, self._status, self._held, self._stops, self._noise, self._speeds):
                found += other(record, settings, marks)
            for other in (self._elsewhere, self._blends, self._blocked, self._paces):
                found += other(record, settings, marks)
        return found

    def _finite(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        valid = record.numbers["valid"] > 0
        for name, rows in record.sent.items():
            bad = ~np.isfinite(rows) & valid[:, None]
            for k in np.flatnonzero(bad.any(axis=1)):
                place = int(np.argmax(bad[k]))
                yield Finding(f"finite {name}", int(k), place, float(rows[k, place]), np.inf)

    def _efforts(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        if settings.limits == "ignore":
            return
        most = self.own_effort if settings.limits == "warn" else self.effort
        effort = self.si(record, "drive_effort")
        kinds = "own " if settings.limits == "warn" else ""
        yield from _beyond(f"{kinds}motor effort", np.abs(effort), np.broadcast_to(most, effort.shape))
        if settings.limits == "warn":
            return
        for joint in self.pairs:
            total = np.abs(effort[:, self.motor_joint == joint].sum(axis=1))[:, None]
            yield from _beyond("effort of a pair", total, np.full(total.shape, self.joint_effort[joint]), joint)

    def _steps(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        if settings.limits == "ignore" or len(record.time) < 2:
            return
        theta = self.si(record, "drive_position")
        step = np.abs(np.diff(theta, axis=0))
        since, leader = times(record, settings)
        shares = step / np.minimum(self.speed, self.joint_velocity[self.motor_joint])
        rested = np.where(np.isfinite(shares), _rested(record, settings, shares), 0) * (leader[1:] == STREAM)[:, None]
        since = np.maximum(since[1:, None], rested)
        bound = self.speed * since
        # Joint sides of the springs: efforts and their rates bound the motion that springs absorb.
        sides = np.diff(theta @ self.sides.T, axis=0)
        tau = record.command["tau"][:, self.motor_joint]
        deflection = np.abs(np.diff(tau, axis=0)) / self.stiffness
        rate = (self.joint_effort_rate[self.motor_joint] / self.stiffness) * since
        # Commands ahead of setpoints, which keep to limits, are as much faster as these speed up until then.
        lead = float(settings.others.get("command_lead", 0.0)) * np.abs(record.setpoint["qdd"])[1:, self.motor_joint]
        allowed = (self.joint_velocity[self.motor_joint] + lead) * since + np.where(np.isfinite(rate), rate, deflection)
        by_motor = np.isfinite(self.speed)
        # Steps of a continuing stop agree with its velocities, as for other motions if limits are reported.
        skip = _unsteady(record, marks) | ((leader[1:] == STOP) & (leader[:-1] == STOP))
        if settings.limits == "warn":
            skip |= np.isin(leader[1:], OWN)
        if settings.others.get("permissive"):
            skip |= leader[1:] == STREAM
        # In compliant modes and after a pause, motor commands are at the measured positions.
        skip |= (record.numbers["mode"] != POSITION)[1:]
        if marks.measured.shape[1]:
            skip |= (leader[1:] == NOBODY) & np.all(np.abs(theta - marks.measured)[1:] < 1e-4 + deflection, axis=1)
        yield from _beyond("motor step", np.where(skip[:, None] | ~by_motor, 0, step), _rounded(bound, 3e-3), first=1)
        # Transients of damped springs are not of the velocities of joints.
        free = by_motor | (np.bincount(self.motor_joint)[self.motor_joint] > 1) | bool(settings.others.get("lag"))
        yield from _beyond(
            "motor step of a joint", np.where(skip[:, None] | free, 0, np.abs(sides)), _rounded(allowed, 3e-3), first=1
        )

    def _joint_steps(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        if settings.limits == "ignore" or len(record.time) < 2 or settings.feedback:
            return
        since, leader = times(record, settings)
        tau = record.sent["sent_effort"]
        if settings.limits == "warn":  # a stop clips efforts of setpoints beyond limits, which are reported
            tau = np.clip(tau, -self.joint_effort, self.joint_effort)
        bound = self.joint_effort_rate * since[1:, None] + 1e-6
        position = record.numbers["mode"] == POSITION
        skip = _unsteady(record, marks) | ~(position[1:] & position[:-1])
        skip |= _entered(record)  # of a blend of modes
        skip |= (leader[1:] == STOP) & (leader[:-1] == STOP)
        if settings.others.get("permissive"):
            skip |= leader[1:] == STREAM
        yield from _beyond(
            "effort rate", np.where(skip[:, None], 0, np.abs(np.diff(tau, axis=0))), _rounded(bound), first=1
        )

    def _leaders(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """Effort changes at a change of the source, beyond the prediction by the last command's rates."""
        if len(record.time) < 2:
            return
        since, leader = times(record, settings)
        # Without a source, the command is constant: a stream continues after refused setpoints.
        stands = leader.copy()
        for k in range(1, len(stands)):
            if stands[k] == NOBODY and not marks.restarted[k]:
                stands[k] = stands[k - 1]
        changes = leader[1:] != stands[:-1]
        changes |= marks.restarted[1:] & (record.numbers["status"][1:] == STOPPING)
        if settings.limits == "ignore":
            changes &= leader[1:] != STREAM
        # Payloads also change without a source.
        changes &= (leader[1:] != NOBODY) | ~np.any(np.diff(record.setpoint["P"], axis=0), axis=1)
        skip = _unsteady(record, marks) | ~(np.isfinite(record.command["motor_effort"]).all(axis=1))[1:]
        # If limits are clipped or reported, motors beyond their speed or joint limits are decelerated.
        too_fast = np.any(np.abs(record.command["motor_velocity"]) > self.speed, axis=1)
        if settings.limits != "refuse":
            too_fast |= self._too_fast(record)
            # Computed efforts beyond motor limits are clipped as well.
            too_fast |= np.any(np.abs(record.command["motor_effort"]) > 0.999 * self.own_effort, axis=1)
        skip |= too_fast[1:] | too_fast[:-1]
        rows = np.flatnonzero(changes & ~skip)
        if not len(rows):
            return
        moved = record.numbers["mode"] == POSITION
        effort = self.si(record, "drive_effort")
        if settings.feedback:  # which the record does not tell from the rest
            return
        h, command = np.clip(since, 0, LONGEST_STEP), record.command
        # Rotors on soft springs have more jerk than their links: compare with the cycles around.
        spin = np.abs(np.diff(command["motor_acceleration"], axis=0)) / np.maximum(h[1:, None], 1e-9)
        beside = np.maximum(spin[np.maximum(rows - 1, 0)], spin[np.minimum(rows + 1, len(spin) - 1)])
        predicted = self.predicted(record, np.append(h[1:], h[-1:]))[rows] + self.inertia * beside * h[rows + 1, None]
        friction = np.zeros((len(rows), len(self.inertia)))
        for i, law in enumerate(self.friction):
            if not law.is_none:
                after, last = (law.effort(command["motor_velocity"][rows + k, i]) for k in (1, 0))
                most = float(np.max(law.static)) if law.has_state or not settings.limits else 0.0
                compliant = ~(moved[rows] & moved[rows + 1])
                friction[:, i] = np.abs(after - last) + most + compliant * 2 * float(np.max(law.static))
        # Gears lose power by the computed effort or by the load; losses change in one cycle.
        load = np.abs(command["tau"])[rows + 1][:, self.motor_joint]
        computed = np.maximum(np.abs(command["motor_effort"])[rows + 1], load)
        loss = self.loss * np.maximum(np.maximum(np.abs(effort[rows]), np.abs(effort[rows + 1])), computed)
        # Allowed: remainders of earlier changes, two with opposite sign at their rate, and effort beyond limits.
        left = np.abs(effort[rows] - command["motor_effort"][rows])
        passes = np.where(left > 1e-9, np.maximum(left, np.abs(effort[rows] - effort[np.maximum(rows - 1, 0)])), 0)
        passes += np.maximum(np.abs(effort[rows]) - np.where(np.isfinite(self.scale), self.scale, np.inf), 0)
        if settings.limits != "refuse":  # also pairs that share joints, if they are clipped in another mode
            sums = np.array([self.arm.side.motor_sums(list(row)) for row in effort[rows]])
            sums = np.maximum(np.abs(sums), np.abs(record.sent["sent_effort"][rows]))
            passes += np.maximum(sums - self.joint_effort, 0)[:, self.motor_joint] @ np.abs(self.loads).T
        allowed = predicted + passes + friction + loss + CHANGE * self.scale + 1e-9
        change = np.abs(effort[rows + 1] - effort[rows])
        for found in _beyond("change of leader", change, allowed):
            at = int(rows[found.cycle])
            yield found._replace(
                cycle=at + 1, rule=f"{found.rule} {NAMES[int(leader[at])]} to {NAMES[int(leader[at + 1])]}"
            )

    def _own_motion(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """Positions of a generated motion agree with its velocities, by the trapezoidal rule."""
        if len(record.time) < 2:
            return
        _, leader = times(record, settings)
        # Ahead of setpoints, commands are for a Taylor polynomial of each.
        own = np.isin(leader, (PLAYING,) if settings.others.get("command_lead") else OWN)
        theta, rate = self.si(record, "drive_position"), self.si(record, "drive_velocity")
        h = np.clip(np.diff(record.time) * 1e-9, 0, LONGEST_STEP)
        regular = (h > 0) & (h < 2.5e-3) & ~marks.jumped[1:] & ~marks.stop_asked[1:]
        # The first command of a stop repeats the last setpoint; at a limit, a joint may stop in one cycle.
        rests = np.all([record.setpoint[name] == 0 for name in tuple(ABSURD)[1:]], axis=0)
        at_once = np.any(rests[1:] & ~rests[:-1], axis=1)
        regular &= ~at_once & ~(record.given & (record.code <= 0))[:-1]
        # Contact in the cycle of a target stops the new motion; the next command repeats the last.
        regular &= ~(marks.posted & (record.numbers["touched"] > 0))[1:]
        # If a command of a motion is refused, the last command is repeated, as for lost setpoints; a motion starts
        # at its plan, near the last command.
        begun = marks.posted | (record.numbers["touched"] > 0)  # contact makes the arm retract
        blocked = np.isin(record.code, [Refusal[name] for name in COMMANDS]) & (~record.given | begun)
        regular &= ~blocked[1:] & ~marks.lost[1:] & ~(np.diff(record.numbers["playing"]) > 0)
        if settings.limits != "refuse":  # except motors that would exceed their speed
            regular &= ~self._too_fast(record)[:-1]
        steady = own[1:] & own[:-1] & (leader[1:] == leader[:-1]) & regular & ~_unsteady(record, marks)
        P, Pd = record.setpoint["P"], record.setpoint["Pd"]
        carries = (record.numbers["loaded"] > 0) & (Pd != 0).any(axis=1)
        carries = carries[1:] | carries[:-1]
        if P.shape[1]:
            rows = np.flatnonzero(steady & carries)
            away = np.abs(P[rows + 1] - P[rows] - h[rows, None] * 0.5 * (Pd[rows] + Pd[rows + 1]))
            bends = np.pad(np.abs(np.diff(Pd, axis=0)), ((1, 1), (0, 0)), mode="edge")
            bend = np.maximum(np.maximum(bends[rows], bends[rows + 1]), bends[rows + 2])
            allowed = h[rows, None] * (0.5 * bend + 0.05 * np.abs(Pd[rows])) + 1e-6
            for found in _beyond("payload by its rate", away, allowed):
                yield found._replace(cycle=int(rows[found.cycle]) + 1)
        rows = np.flatnonzero(steady & ~carries)
        if not len(rows) or settings.others.get("lag"):
            return
        h = h[rows, None]
        away = np.abs(theta[rows + 1] - theta[rows] - h * 0.5 * (rate[rows] + rate[rows + 1]))
        bend = np.abs(record.command["motor_acceleration"])
        turns = np.pad(np.abs(np.diff(record.command["motor_acceleration"], axis=0)), ((1, 1), (0, 0)), mode="edge")
        third = np.maximum(np.maximum(turns[rows], turns[rows + 1]), turns[rows + 2])
        third += 1e-3 * (bend[rows] + bend[rows + 1])
        # Positions of another mode pass over with up to 1700 rad/s^3, at half the largest speed of motors.
        # Within the periods of a motion to targets, snap counts as linear: soft springs have motors 1 mrad/s
        # faster by that.
        allowed = h**2 * third + 2e-6 * (1 + np.abs(theta[rows]))
        # A joint stop may reverse its jerk within a period, and motors of soft springs reverse in one cycle.
        bent = np.abs(
            np.diff(rate, axis=0)[rows]
            - h * 0.5 * (record.command["motor_acceleration"][rows] + record.command["motor_acceleration"][rows + 1])
        )
        allowed += (leader[rows + 1] == STOP)[:, None] * h * 0.5 * bent
        # Joints stop at a position limit, or at their position beyond it, and leave it.
        offset = theta - record.command["motor_position"]
        # Commands are for the setpoint at the lead, here by its Taylor polynomial.
        lead = float(settings.others.get("command_lead", 0.0))
        links = sum(lead**k / math.factorial(k) * record.setpoint[name] for k, name in enumerate(STATE_NAMES))
        places = links[:, self.motor_joint] + offset @ self.sides.T
        ends = np.stack([self.lower, self.upper])[:, None, self.motor_joint]
        still = np.pad(np.abs(np.diff(places, axis=0)) < 1e-9, ((1, 0), (0, 0)))
        beyond = still & ((places < ends[0]) | (places > ends[1]))
        stands = ((np.abs(places - ends) < 1e-8).any(axis=0) | beyond) & (offset != 0)
        meets = (stands[1:] != stands[:-1]).any(axis=1, keepdims=True)[rows]
        allowed += meets * h * np.abs(rate[rows + 1] - rate[rows])
        for found in _beyond("position by velocity", away, allowed):
            at = int(rows[found.cycle]) + 1
            yield found._replace(cycle=at, rule=f"{found.rule}, {NAMES[int(leader[at])]}")

    def _range(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A commanded position beyond a limit goes back."""
        if settings.limits != "refuse" or len(record.time) < 2:
            return
        q = record.setpoint["q"]
        beyond = np.maximum(np.maximum(q - self.upper, self.lower - q), 0)
        position = (record.numbers["mode"] == POSITION)[1:] & (record.numbers["mode"] == POSITION)[:-1]
        skip = ~position | _unsteady(record, marks)
        # A stop from beyond a limit continues on its path at first, after hand guiding, or for a trajectory that would
        # exceed the limit.
        speed, stops = np.abs(record.setpoint["qd"]), leaders(record) == STOP
        passes = (record.code[:-1] == Refusal["over_limits"]) & ~record.given[:-1] & stops[:-1]
        h = np.clip(np.diff(record.time) * 1e-9, 1e-3, LONGEST_STEP)[:, None]
        runs = stops[1:, None] * ((beyond[:-1] > 0) | passes[:, None]) * h * np.maximum(speed[:-1], speed[1:])
        yield from _beyond("range", np.where(skip[:, None], 0, beyond[1:]), beyond[:-1] + 1.1 * runs + 1e-6, first=1)

    def _room(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """From an accepted setpoint, joints with acceleration limits can stop within their position limits."""
        if settings.limits != "refuse" or len(record.time) < 2:
            return
        q, qd = record.setpoint["q"], record.setpoint["qd"]
        room = np.where(qd > 0, self.upper - q, q - self.lower)
        made = (np.diff(record.numbers["followed"], prepend=0) > 0) & (leaders(record) == STREAM)
        acceleration = np.where(np.isfinite(self.acceleration), self.acceleration, np.inf)
        distance = qd**2 / (2 * acceleration)
        rows = made[:, None] & (room >= 0) & ~marks.restarted[:, None]
        yield from _beyond("room to stop", np.where(rows, distance, 0), np.where(rows, 1.3 * room, 0) + 1e-6)

    def _held(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """An arm that is held after a stop rests."""
        numbers = record.numbers
        held = (numbers["status"] == HELD) & (numbers["held"] > 0) & (numbers["mode"] == POSITION) & (record.code == 0)
        held &= (numbers["valid"] > 0) & (numbers["playing"] == 0) & (numbers["aiming"] == 0)
        for k in np.flatnonzero(held):
            rate = np.abs(record.setpoint["qd"][k])
            if rate.max() > 1e-6:
                yield Finding("held, but moves", int(k), int(np.argmax(rate)), float(rate.max()), 0.0)

    def _noise(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A stop after a stream with noisy jerk and snap moves at most 2.5 times as far as without jerk and snap.

        Or as far as jerk and snap would move it within the duration of stops, if this is less.
        """
        if len(record.time) < 2:
            return
        leader = leaders(record)
        excluded = np.append(False, _unsteady(record, marks)) | (record.numbers["mode"] != POSITION)
        excluded |= (record.numbers["touched"] > 0) | marks.posted  # stops of targets differ
        q, rates = record.setpoint["q"], [np.abs(record.setpoint[name]) for name in STATE_NAMES[1:]]

        def ways(T: float, k: int) -> tuple[Array, Array]:
            qd, qdd, qddd, qdddd = (row[k] for row in rates)
            return T * qd / 2 + 3 * T**2 * qdd / 28, T**3 * qddd / 84 + T**4 * qdddd / 1680

        for k in 1 + np.flatnonzero((leader[1:] == STOP) & (leader[:-1] == STREAM)):
            T = float(record.numbers["stop_end"][k])
            ends = np.flatnonzero((leader[k:] != STOP) | (record.numbers["stop_end"][k:] != T))
            end = k + int(ends[0]) if len(ends) else len(leader)
            if excluded[k:end].any() or not np.isfinite(T):
                continue
            h = np.clip(np.diff(record.time[k:end]) * 1e-9, 0, LONGEST_STEP)
            T = max(T, float(h.sum()))  # longer if limits require it
            way = np.abs(q[k:end] - q[k - 1]).max(axis=0)
            whole, noise = ways(float(settings.others.get("stop_duration", 0.3)), k - 1)
            most = 2.5 * np.maximum(*(x * kept for x, kept in zip(ways(T, k - 1), (1, noise <= whole), strict=True)))
            yield from _beyond("way of a stop", way[None], most[None] + 1e-6, first=int(k))

    def _speeds(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A motion to targets meets its velocity limits, or its initial velocity."""
        most = settings.others.get("target_velocity")
        if most is None or len(record.time) < 2:
            return
        leader = leaders(record)
        qd, qdd, qddd = (np.abs(record.setpoint[name]) for name in ("qd", "qdd", "qddd"))
        for k in 1 + np.flatnonzero((leader[1:] == AIMING) & (leader[:-1] != AIMING)):
            ends = np.flatnonzero(~np.isin(leader[k:], (AIMING, STOP)))  # it brakes
            end = k + int(ends[0]) if len(ends) else len(leader)
            if (marks.restarted[k - 1 : end] | (record.numbers["mode"] != POSITION)[k - 1 : end]).any():
                continue
            if (qdd[k - 1] > 2 * settings.others.get("target_acceleration", np.inf)).any():
                continue  # which it loses at its limit of jerk
            bound = 1.05 * (np.maximum(most, qd[k - 1]) + 0.12 * qdd[k - 1] + 0.12**2 / 6 * qddd[k - 1])
            yield from _beyond("speed of a target", qd[k:end].max(axis=0)[None], bound[None], first=int(k))

    def _elsewhere(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """An arm with zero rates for 0.1 s starts no motion while it is measured elsewhere."""
        numbers = record.numbers
        if marks.measured.shape[1] == 0 or len(record.time) < 2:
            return
        leads = (numbers["playing"] > 0) | (numbers["aiming"] > 0)
        begins = leads[1:] & ~leads[:-1] & (numbers["mode"] == POSITION)[1:] & (numbers["mode"] == POSITION)[:-1]
        begins &= (numbers["valid"] > 0)[:-1] & ~marks.restarted[1:]
        begins &= ~(numbers["touched"] > 0)[1:]  # it retracts
        theta, q = self.si(record, "drive_position"), record.setpoint["q"]
        clock = 1e-9 * np.concatenate(([0], np.cumsum(np.maximum(np.diff(record.time), 0))))
        for k in 1 + np.flatnonzero(begins):
            # Measured positions that jump are accepted after 0.1 s.
            moved = np.any(np.abs(q[:k] - q[k - 1]) > 1e-8, axis=1) | marks.restarted[:k] | marks.moved[1 : k + 1]
            moved |= np.any([record.setpoint[name][:k] != 0 for name in STATE_NAMES[1:]], axis=(0, 2))
            rests = np.flatnonzero(moved)
            since = clock[k - 1] - clock[min(rests[-1] + 1, k - 1) if len(rests) else 0]
            # A host starts a target before it measures in this cycle.
            asked, away, now = (np.abs(marks.measured[j] - theta[i]) for j, i in ((k - 1, k - 1), (k, k - 1), (k, k)))
            if np.any(np.diff(record.time[max(k - 100, 0) : k + 1]) < 0):  # samples are of the time before
                continue
            if since > RECENT + 2e-3 and all(x.max() > ELSEWHERE for x in (asked, away, now)):
                yield Finding("begins elsewhere", int(k), int(np.argmax(away)), float(away.max()), ELSEWHERE)

    def _blends(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """In a late cycle, efforts of another mode blend by at most their change in 20 of 300 ms."""
        if len(record.time) < 2 or settings.feedback:
            return
        leader, effort = leaders(record), self.si(record, "drive_effort")
        position = record.numbers["mode"] == POSITION
        left = np.abs(effort - record.command["motor_effort"])
        clipped = (np.abs(effort) > 0.99 * self.effort).any(axis=1) & (settings.limits != "ignore")
        late = np.abs(np.diff(record.time)) > 1e9 * LONGEST_STEP
        mode = record.numbers["mode"]
        clock = np.cumsum(np.clip(np.diff(record.time, prepend=record.time[0]) * 1e-9, 0, LONGEST_STEP))
        changed = np.concatenate(([False], mode[1:] != mode[:-1]))
        since = clock - np.maximum.accumulate(np.where(changed, clock, -np.inf))
        rows = (
            late
            & (since < 0.3)[:-1]
            & position[1:]
            & position[:-1]
            & ~_unsteady(record, marks)
            & ~clipped[1:]
            & ~clipped[:-1]
        )
        for k in 1 + np.flatnonzero(rows):
            recent = slice(max(k - 320, 0), k)
            last = slice(max(k - 12, 0), k + 1)
            others = (leader[last] != leader[k]).any() or marks.stop_asked[last].any()
            resumes = record.numbers["status"][k] != record.numbers["status"][k - 1]
            if others or resumes:
                continue
            # Blends at a change of the source are shorter, at half the effort rate limit.
            begins = recent.start + np.flatnonzero(leader[recent] != leader[k])
            passes = slice(int(begins[-1]) + 1 if len(begins) else k, k)
            joints = np.abs(record.sent["sent_effort"][passes] - record.command["tau"][passes])
            duration = (
                float(np.max(3.75 * joints / self.joint_effort_rate, initial=0))
                if _follows_another(leader, passes)
                else 0.3
            )
            bound = 0.13 * 0.3 / np.clip(duration, 0.01, 0.3) * left[recent].max(axis=0) + 1e-6
            change = np.minimum(np.abs(left[k] - left[k - 1]), np.abs(effort[k] - effort[k - 1]))
            yield from _beyond("blend of modes", change[None], bound[None], first=int(k))

    def _paces(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A pace, at most 1, changes at most as fast as in a stop, by a smoothstep of degree 7."""
        plays, pace = record.numbers["playing"] > 0, record.numbers["pace"]
        h = np.clip(np.diff(record.time) * 1e-9, 0, LONGEST_STEP)
        plays = plays[1:] & plays[:-1] & ~(marks.posted | marks.restarted | marks.jumped)[1:]
        goes_on = np.diff(record.numbers["path_time"])
        begins = (record.numbers["path_time"][1:] == 0) | (np.diff(record.numbers["waiting"]) < 0)
        plays &= (goes_on >= 0) & (goes_on <= 2 * LONGEST_STEP) & ~begins  # of one motion
        most = 2.19 / max(float(settings.others.get("stop_duration", 0.3)), 0.3) * h
        yield from _beyond("pace", np.where(record.numbers["playing"] > 0, pace, 0)[:, None], np.ones((len(pace), 1)))
        yield from _beyond("pace", np.where(plays, np.abs(np.diff(pace)), 0)[:, None], most[:, None] + 1e-9, first=1)

    def _blocked(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """Motors can make the steps of motions that go on."""
        if settings.limits != "refuse":
            return
        leader = leaders(record)
        given = record.given | np.concatenate(([False], record.code[:-1] == Refusal["early"]))
        for k in np.flatnonzero((record.code == Refusal["motor_step"]) & ~given):
            goes_on = k > 1 and leader[k - 1] in (PLAYING, AIMING) and leader[k - 2] == leader[k - 1]
            others = marks.posted[k] or record.numbers["touched"][k]  # a target, also from a contact, is blocked
            if goes_on and not (others or marks.restarted[k - 2 : k + 1].any()):
                yield Finding("motion is blocked", int(k), 0, 1.0, 0.0)

    def _too_fast(self, record: Record) -> Array:
        """True for cycles (N,) in which motors, or joints at them, would exceed their speed limits."""
        rate = np.abs(record.command["motor_velocity"])
        sides = np.abs(record.command["motor_velocity"] @ self.sides.T)
        return np.any((rate > self.speed) | (sides > self.joint_velocity[self.motor_joint]), axis=1)

    def _status(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A command is fresh only with a source, and with recent setpoints."""
        numbers = record.numbers
        fresh = (numbers["status"] == FRESH) & (numbers["valid"] > 0)
        leads = (numbers["playing"] > 0) | (numbers["aiming"] > 0) | (numbers["mode"] != POSITION)
        made = np.diff(numbers["followed"], prepend=0) > 0
        last = np.maximum.accumulate(np.where(made, np.arange(len(made)), -1))
        # Time that counts: a stall is one late cycle.
        clock = np.concatenate(([0.0], np.cumsum(np.clip(np.diff(record.time) * 1e-9, 0, LONGEST_STEP))))
        age = np.where(last >= 0, clock - clock[np.maximum(last, 0)], np.inf)
        timeout = settings.setpoint_timeout or np.inf
        stale = fresh & ~leads & (age > timeout + 2e-3 + LONGEST_STEP * (timeout < np.inf))
        stale |= fresh & (last < 0) & ~leads
        of_setpoints = np.isin(record.code, [Refusal[name] for name in REFUSALS])
        # At rest, commands blend to another payload, whatever arrives.
        passes = np.any(np.diff(record.setpoint["P"], axis=0, prepend=record.setpoint["P"][:1]), axis=1)
        # A queued trajectory may be refused while a setpoint is followed.
        waits = np.concatenate(([False], numbers["waiting"][:-1] > 0))
        repeats = ~np.any(np.diff(record.state, axis=0, prepend=record.state[:1]), axis=(1, 2))
        others = marks.posted | waits | passes | repeats
        refused = fresh & ~leads & of_setpoints & record.given & made & ~others
        for rule, rows in (("fresh, but stale", stale), ("fresh, but refused", refused)):
            for k in np.flatnonzero(rows):
                yield Finding(rule, int(k), 0, float(age[k]), timeout)

    def _stops(self, record: Record, settings: Settings, marks: Marks) -> Iterator[Finding]:
        """A requested stop is at rest by its end, and no other source commands the arm before."""
        numbers = record.numbers
        _, leader = times(record, settings)
        clock = np.concatenate(([0.0], np.cumsum(np.clip(np.diff(record.time) * 1e-9, 0, LONGEST_STEP))))
        complies = numbers["mode"] != POSITION
        excluded = marks.restarted | complies | np.concatenate(([False], complies[:-1]))
        step = np.abs(np.diff(record.setpoint["q"], axis=0, prepend=record.setpoint["q"][:1]))
        distance = settings.start_tolerance
        for k in np.flatnonzero(marks.stop_asked):
            leads = numbers["status"][k] in (STOPPING, FRESH) and leader[k] not in (NOBODY, IMPEDANT, LED)
            if k == 0 or excluded[k] or not leads:
                continue
            # A target or a trajectory may lead in its place, and setpoints once the arm rests.
            if leader[k] != STOP:
                if leader[k] == STREAM and np.abs(record.setpoint["qd"][k - 1]).max() > 1e-3:
                    yield Finding("a stop is not begun, stream", int(k), 0, float(step[k].max()), distance)
                continue
            ends = np.flatnonzero(leader[k:] != STOP)
            end = k + int(ends[0]) if len(ends) else len(leader)
            # A target or a trajectory that is refused ends in another stop.
            others = marks.posted[k + 1 : end + 1].any() or marks.lost[k + 1 : end + 1].any()
            before = np.flatnonzero(excluded[k:end] | marks.jumped[k:end] | others)
            streams = end < len(leader) and leader[end] == STREAM and not (excluded[end] or len(before))
            # An arm rests whose acceleration ends its velocity within the cycle.
            qd, qdd = (np.abs(record.setpoint[name][end - 1]) for name in ("qd", "qdd"))
            moves_on = bool(np.any(qd > np.maximum(1e-3, np.diff(clock[end - 1 : end + 1]).sum() / 2 * qdd)))
            if streams and not marks.jumped[end] and moves_on:
                yield Finding("a stop does not hold, stream", int(end), 0, float(step[end].max()), distance)
            if not len(before):
                moves = np.flatnonzero(step[k:end].max(axis=1) > 1e-9)
                took = clock[k + int(moves[-1])] - clock[k] if len(moves) else 0.0
                wanted = float(numbers["stop_end"][k : k + 25].max())
                if np.isfinite(wanted) and took > wanted + 0.5:
                    yield Finding("a stop does not end", int(end - 1), 0, float(took), wanted)


NAMES = ("nobody", "stream", "trajectory", "target", "stop", "impedance", "hands")


def absurd(record: Record) -> Array:
    """Cycles (N,) with numbers that no arm can have."""
    return np.any([np.abs(record.setpoint[name]).max(axis=1) > most for name, most in ABSURD.items()], axis=0)


def leaders(record: Record) -> Array:
    """Command source in each cycle (N,)."""
    numbers = record.numbers
    made = np.diff(numbers["followed"], prepend=0) > 0
    stops = numbers["status"] == STOPPING
    conditions = (numbers["mode"] == GRAVITY, numbers["mode"] == IMPEDANCE, stops, numbers["playing"] > 0)
    # An early setpoint is followed one cycle later, or at its time.
    waited = record.given | (record.code == Refusal.early)  # type: ignore[attr-defined]
    given = record.given | np.concatenate(([False], waited[:-1]))
    accepted = made & given & (numbers["status"] == FRESH)
    conditions += (numbers["aiming"] > 0, accepted)
    found = np.select(conditions, (LED, IMPEDANT, STOP, PLAYING, AIMING, STREAM), NOBODY)
    # The last command of a motion is its own, and a stream leads until its setpoints are lost.
    goes_on = made | (numbers["status"] == FRESH)
    for k in np.flatnonzero((found == NOBODY) & goes_on):
        before = found[k - 1] if k else NOBODY
        found[k] = before if made[k] or before == STREAM else NOBODY
        if made[k] and before == NOBODY and numbers["status"][k] == FRESH:
            found[k] = STREAM
    return np.asarray(found)


def times(record: Record, settings: Settings) -> tuple[Array, Array]:
    """Time that counts for the step to each cycle, s (N,), and the leaders."""
    leader = leaders(record)
    numbers = record.numbers
    made = (np.diff(numbers["followed"], prepend=0) > 0) | (numbers["mode"] != POSITION)
    index = np.arange(len(made))
    last = np.maximum.accumulate(np.where(made, index, 0))
    before = np.concatenate(([0], last[:-1]))
    clock = np.concatenate(([0], np.cumsum(np.maximum(np.diff(record.time), 0))))
    stream = leader == STREAM
    # A stream has the time of its silence, also while a payload blends.
    answered = np.maximum.accumulate(np.where(record.given | ~stream, index, 0))
    before = np.where(stream, np.minimum(before, np.concatenate(([0], answered[:-1]))), before)
    passed = (clock - clock[before]) * 1e-9
    longest = np.where(stream, settings.setpoint_timeout or RECENT, LONGEST_STEP)
    # A cycle without a new reference repeats the last command, except for blends.
    # Stamps of a stream may run ahead of its arrival.
    return np.minimum(np.maximum(passed, 1e-3), longest) + np.where(stream, STAMPS_AHEAD, 0), leader


def _rested(record: Record, settings: Settings, shares: Array) -> Array:
    """Time for which motors have been at rest at each step, s (N - 1, m), with the minimum time of each step, s.

    A motor that is moved by less than a fiftieth of its speed since the last command rests; the time of setpoints
    counts until they are lost.
    """
    clock = np.concatenate(([0], np.cumsum(np.maximum(np.diff(record.time) * 1e-9, 0))))
    made = np.diff(record.numbers["followed"]) > 0
    commanded = np.maximum.accumulate(np.where(made, np.arange(1, len(clock)), 0))
    passed = clock[1:] - clock[np.concatenate(([0], commanded[:-1]))]
    moves = ~(np.nan_to_num(shares) <= 0.02 * passed[:, None])
    last = np.maximum.accumulate(np.where(moves, np.arange(1, len(moves) + 1)[:, None], 0), axis=0)
    last = np.vstack([np.zeros_like(last[:1]), last[:-1]])
    rested = clock[1:, None] - clock[last]
    return np.minimum(rested, settings.setpoint_timeout or RECENT) + STAMPS_AHEAD


def _follows_another(leader: Array, rows: slice) -> bool:
    """True if the source of some cycles replaced another source of the same mode."""
    return rows.start > 0 and rows.start < rows.stop and int(leader[rows.start - 1]) not in (IMPEDANT, LED)


def _unsteady(record: Record, marks: Marks) -> Array:
    """Steps (N - 1,) from or to no command, of a restart, or by a jump of a measured position."""
    valid = record.numbers["valid"] > 0
    away = marks.moved & (record.numbers["mode"] != POSITION)
    away |= np.concatenate(([False], away[:-1]))
    # After a pause of the process, the arm is at its measured position.
    paused = np.diff(record.time) > 1e9 * RECENT
    return ~(valid[1:] & valid[:-1]) | marks.restarted[1:] | away[1:] | paused


def _entered(record: Record) -> Array:
    """Steps (N - 1,) within 0.3 s of a mode change, during the blend of efforts."""
    mode = record.numbers["mode"]
    changed = np.concatenate(([False], mode[1:] != mode[:-1]))
    at = np.maximum.accumulate(np.where(changed, np.arange(len(mode)), -(10**6)))
    return (np.arange(len(mode)) - at < 320)[1:]


def _rounded(bound: Array, bend: float = 1e-6) -> Array:
    """Bounds of differences: velocities may be a little larger between two cycles."""
    return bound * (1 + bend) + 1e-9


def _beyond(rule: str, values: Array, bounds: Array, place: int | None = None, first: int = 0) -> Iterator[Finding]:
    """The worst place of each row beyond bounds."""
    beyond = values > bounds * (1 + 3e-9)  # limits have a tolerance of 1e-9
    for k in np.flatnonzero(beyond.any(axis=1)):
        at = int(np.argmax(np.where(beyond[k], values[k] / bounds[k], 0)))
        yield Finding(rule, int(k) + first, at if place is None else place, float(values[k, at]), float(bounds[k, at]))
