# SPDX-License-Identifier: Apache-2.0
"""Random sequences of every input of a control loop, for ten arms, with the findings of the oracle.

``python test/helpers/random_scenes.py SEED [SEED …]`` runs scenes again, and prints their findings.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from loop_rig import MS, NUMBERS, LoopRig, Record, rest, straight, table_of
from own_drives import EVERY_UNIT, with_drives
from sent_oracle import FRESH, GRAVITY, HELD, IMPEDANCE, LOST, STOPPING, Finding, Marks, SentOracle, Settings
from springs import EVERY_KIND, with_springs

from eom_dynamics import ContactThresholds, ExternalEffortObserver, Robot, load_robot
from eom_dynamics.actuators import Transmission
from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import LONGEST_GAP
from eom_dynamics.robot.model import EffortSpread

CYCLES = 2000
"""Length of a scene."""

# --- Arms -------------------------------------------------------------------------------------------------------------


def _limited(robot: Robot, name: str, *rows: dict[str, float]) -> Robot:
    joints = (
        replace(joint, limits=replace(joint.limits, **rows[k % len(rows)])) for k, joint in enumerate(robot.joints)
    )
    return replace(robot, name=name, joints=tuple(joints))


MOTORS_ALONE = {"velocity": np.inf, "effort": np.inf}
"""Limits of joints, if only their motors have limits."""


def _coupled() -> Robot:
    """A differential between two joints."""
    return replace(load_robot("panda"), name="coupled", transmission=((4, 6), Transmission([[0.5, 0.5], [0.5, -0.5]])))


def _damped() -> Robot:
    """Damped springs, and friction with presliding at one motor."""
    arm = with_springs(load_robot("planar_2r"), EVERY_KIND["damped"], rotor_inertia=0.2)
    return _limited(arm, "damped", {"velocity": 3.0, "effort": 60.0, "lower": -2.5, "upper": 2.5})


def _carried() -> Robot:
    arm = replace(load_robot("sea_planar_2r"), rotor_model="complete")
    limits = MOTORS_ALONE | {"velocity": 4.0, "acceleration": 30.0, "lower": -2.8, "upper": 2.8}
    return _limited(arm, "carried", limits)


def _rigid() -> Robot:
    """Rigid joints, motors with friction, and drives with units of their own."""
    arm = with_drives(
        with_springs(load_robot("planar_2r"), EVERY_KIND["rigid"], rotor_inertia=0.2), units=EVERY_UNIT[:2]
    )
    return _limited(arm, "rigid", {"velocity": 2.5, "effort": 80.0, "acceleration": 20.0, "effort_rate": 3000.0})


def _prismatic() -> Robot:
    return _limited(
        load_robot("planar_pr"),
        "slide",
        {"velocity": 1.0, "effort": 150.0, "acceleration": 8.0, "lower": -1.0, "upper": 1.0},
        {"velocity": 3.0, "effort": 40.0, "effort_rate": 2000.0, "lower": -3.0, "upper": 3.0},
    )


ROBOTS: dict[str, Callable[[], Robot]] = {
    **{name: (lambda name=name: load_robot(name)) for name in ("panda", "ur5e", "iiwa")},
    **{
        name: (lambda name=name: _limited(load_robot(name), name, MOTORS_ALONE))
        for name in ("sea_planar_2r", "vsa_planar_2r")
    },
    **{"coupled": _coupled, "damped": _damped, "carried": _carried, "rigid": _rigid, "slide": _prismatic},
}
"""Ten arms: with limits of joints or motors, coupled and carried rotors, dampers, variable stiffness, and a slide."""

QUIET = {
    "panda": [0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5],
    "coupled": [0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5],
    "ur5e": [0, -1.2, 1.3, -1.0, -1.5, 0],
    "iiwa": [0, 0.8, 0, -1.0, 0, 0.5, 0],
    "slide": [0.1, -0.6],
    "fourteen": 2 * [0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5],
    "dual_arm": 9 * [0.0],
}
"""Start positions of the arms; planar arms hang below."""

WITH_CONTACT = ("panda", "sea_planar_2r", "slide", "ur5e", "iiwa")


class Arm(NamedTuple):
    """Arm of scenes: its oracle, joint speeds (n,), and start positions."""

    robot: Robot
    oracle: SentOracle
    velocity: Array
    quiet: Array
    contact: tuple[Array, ...] | None


@cache
def arm_of(name: str, make: Callable[[], Robot] | None = None, lead: float = 0.0) -> Arm:
    """An arm with its code, by default one of ROBOTS, and a command lead, s."""
    robot = replace((make or ROBOTS[name])(), drive_delay=lead)
    table = table_of(robot)
    arm = table.arm
    if robot.tools:
        table.prepare_payload()
    table.prepare_drive_states()
    oracle = SentOracle(arm)
    velocity = np.where(np.isfinite(oracle.joint_velocity), oracle.joint_velocity, 1.5)
    for joint in range(robot.n):
        velocity[joint] = min(velocity[joint], float(oracle.speed[oracle.motor_joint == joint].min()))
    contact = None
    if name in WITH_CONTACT:
        table.prepare_observer()
        spread = [EffortSpread((0.0, 1.0), (0.3, 0.3), 0.02)] * robot.n
        contact = ContactThresholds(ExternalEffortObserver(arm, 60.0, "torque"), spread=spread).rows()
    hanging = np.resize([-1.4, 0.3] if robot.gravity[1] else [0.2, 0.3], robot.n)
    quiet = np.array(QUIET.get(name, hanging), dtype=float)
    return Arm(robot, oracle, velocity, quiet, contact)


# --- States and inputs ------------------------------------------------------------------------------------------------

STATES = ("waiting", "following", "playing", "aiming", "stopping", "holding", "lost", "impedance", "led by hand")
STATES += ("in contact", "paused")

RARE = {"holding": 0.8, "lost": 0.8, "in contact": 0.5, "playing": 0.3}
"""Shares of the cycles of states that do not last with an input."""

BUSY = 0.2
"""Weights of inputs during a stream, in each second scene of an arm, so that streams last."""

OFTEN = {"trajectory": 6.0, "stop": 4.0, "empty trajectory": 3.0, "loss": 6.0, "silence": 6.0}
"""Weights of inputs, by default 1."""

_VALID, _PLAYING, _AIMING, _MODE = map(NUMBERS.index, ("valid", "playing", "aiming", "mode"))
_NONE = (0,) * len(NUMBERS)


def state_of(numbers: Sequence[float]) -> str:
    """State of the loop after a cycle with these NUMBERS."""
    status, valid, playing, aiming, _, _, lost, mode, touched, _, _, _, paused, *_ = numbers
    if not valid:
        return "waiting"
    if touched:
        return "in contact"
    if mode == GRAVITY:
        return "led by hand"
    if mode == IMPEDANCE:
        return "impedance"
    if paused:
        return "paused"
    if status == STOPPING:
        return "stopping"
    if playing:
        return "playing"
    if aiming:
        return "aiming"
    if status == LOST or lost:
        return "lost"
    return "holding" if status == HELD else "following" if status == FRESH else "waiting"


def clean(start: Array, way: Array, rate: float, times: Array) -> Array:
    """States (N, 5, n) at times, s, of a motion from rest and back at ``rate``, rad/s: way/8 (1 - cos)³."""
    t = times[:, None] * rate
    harmonics = np.array([0.0, 1.0, 2.0, 3.0])
    factors = np.array([2.5, -3.75, 1.5, -0.25]) / 8
    rows = [(factors * np.cos(t * harmonics + 0.5 * np.pi * k) * (rate * harmonics) ** k).sum(axis=1) for k in range(5)]
    states = np.stack(rows, axis=1)[:, :, None] * way
    states[:, 0] += start
    return states


def steady(start: Array, joint: int, velocity: float, rise: float, t: Array) -> Array:
    """States (N, 5, n) at times t, s, of a joint that accelerates from rest within ``rise`` s, C⁴, to ``velocity``."""
    u = np.minimum(t / rise, 1.0)
    left = u * (1 - u)
    way = u**6 * (21 - 60 * u + 67.5 * u**2 - 35 * u**3 + 7 * u**4) * rise + np.maximum(t - rise, 0)
    rates = [u**5 * (126 - 420 * u + 540 * u**2 - 315 * u**3 + 70 * u**4), 630 * left**4 / rise]
    rates += [2520 * left**3 * (1 - 2 * u) / rise**2, 2520 * left**2 * (3 * (1 - 2 * u) ** 2 - 2 * left) / rise**3]
    states = np.zeros((len(t), 5, len(start)))
    states[:, 0] = start
    states[:, :, joint] += velocity * np.stack([way, *rates], axis=1)
    return states


class Scene:
    """Random inputs of a loop, cycle by cycle, by a seed.

    Attributes:
        robots: arms by name.
        inputs: inputs by kind.
        counts: inputs by state and kind.
        period: nominal period of the cycles, ns.
    """

    robots = ROBOTS
    inputs: dict[str, Callable[[Any], None]]
    period = MS

    def __init__(self, seed: int, cycles: int = CYCLES) -> None:
        self.seed, self.length = seed, cycles
        self.rng = rng = np.random.default_rng(seed)
        self.name = list(self.robots)[seed % len(self.robots)]
        arm = arm_of(self.name, self.robots[self.name])
        limits = str(rng.choice(["refuse", "warn", "ignore"], p=[0.75, 0.15, 0.1]))
        permissive = limits in ("warn", "ignore") and rng.random() < 0.5
        self.touches = arm.contact is not None and rng.random() < 0.6
        feedback = not self.touches and rng.random() < 0.35
        timeout = 0.0 if permissive else float(rng.choice([0.1, 0.1, 0.05, 0.02]))
        n = arm.robot.n
        effort = np.where(np.isfinite(arm.oracle.joint_effort), arm.oracle.joint_effort, 50.0)
        chosen: dict[str, Any] = {
            "limits": limits,
            "setpoint_timeout": timeout,
            "on_setpoint_loss": str(rng.choice(["hold", "none", "deactivate"], p=[0.6, 0.1, 0.3])),
            "stop_duration": float(rng.choice([0.05, 0.1, 0.3])),
            "stiffness": rng.uniform(1, 4) * effort,
        }
        if lead := float(rng.choice([0.0, 0.0, 0.002])):
            arm = arm_of(self.name, self.robots[self.name], lead)
        self.arm = arm
        if feedback:
            m = len(arm.oracle.motor_joint)
            chosen |= {"motor_kp": np.full(m, 2 * effort.min()), "motor_kd": np.full(m, 0.02 * effort.min())}
        if self.touches:
            chosen["on_contact"] = str(rng.choice(["stop", "retract", "deactivate"], p=[0.6, 0.3, 0.1]))
        acceleration = np.array([joint.limits.acceleration for joint in arm.robot.independent_joints])
        targets = {
            "velocity": 0.9 * arm.velocity,
            "acceleration": np.where(np.isfinite(acceleration), acceleration, 5 * arm.velocity),
        }
        safety = "permissive" if permissive else "strict"
        hosted = seed // len(self.robots) % 4 == 3  # as by a node
        chosen |= self._further_settings(effort)
        feedback |= "link_kp" in chosen
        self.rig = LoopRig(
            arm.robot, safety, targets=targets, cycles=cycles, hosted=hosted, period=self.period / 1e9, **chosen
        )
        self.settings = Settings(
            limits,
            timeout,
            feedback,
            float(chosen.get("start_tolerance", 0.1 if permissive else 0.01)),
            {"lag": self.name == "damped", "permissive": permissive, "command_lead": lead}
            | {f"target_{name}": row for name, row in targets.items()}
            | chosen,
        )
        self.marks = Marks.none(cycles, len(arm.oracle.motor_joint))
        self.counts: Counter[tuple[str, str]] = Counter()
        self.state = "waiting"
        # Measured positions in drive units, at the arm and away from the command.
        scale, zero = arm.oracle.units["drive_position"]
        self._scale, self._zero = scale, zero
        self._to_drives = scale[:, None] * np.linalg.inv(arm.oracle.sides)
        self._offset = np.zeros(len(scale))
        self._away = np.zeros(n)
        self._is_moved, self._zeros = False, np.zeros(len(scale))
        self._began = arm.quiet.copy()
        loop = self.rig.loop
        self._measured = loop.vectors("measured", dict.fromkeys(("motor_position", "motor_velocity"), len(scale)))
        self._sensed = loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), n))
        self._sensed |= loop.vectors("sensed", dict.fromkeys(("motor_position", "motor_velocity"), len(scale)))
        if self.touches:
            observer = ExternalEffortObserver(loop.arm, 60.0, "torque", loop=loop)
            observer.watch(*arm.contact)
        first, second = loop.given["q"], loop.given["qd"]
        strides = (second.ctypes.data - first.ctypes.data, first.itemsize)
        self._given = np.lib.stride_tricks.as_strided(first, (5, n), strides)
        self._at = scale * (arm.quiet[arm.oracle.motor_joint]) + zero
        self._blind_until = self._glitch_at = self._push_until = -1
        self._sampled = -LONGEST_GAP
        self._hand: tuple[Array, Array, Array, int] | None = None
        self._stream: Array | None = None
        self._stream_at = 0
        self._kind = "setpoint"
        self._more: dict[str, Array] = {}
        self._rate = float(rng.choice([0.03, 0.2, 0.6]))
        self._rare = RARE | ({"following": BUSY} if seed // len(self.robots) % 2 else {})
        self._every = int(rng.choice([1, 1, 1, 4]))
        self._hush, self._waits = 0, 0
        self._speeds = 0, 1
        self._early_at = -1
        # Without limits, all finite numbers are followed.
        self._huge = () if limits == "ignore" else (1e154, 1e300)
        self._inputs = [x for x in self.inputs if self._has(x)]
        weights = np.array([OFTEN.get(x, 1.0) for x in self._inputs])
        self._weights = weights / weights.sum()

    def _has(self, name: str) -> bool:
        if name == "payload":
            return bool(self.arm.robot.tools)
        if name == "contact":
            return self.touches
        if name == "clock back":  # a node ends motions itself
            return not self.rig.hosted
        if name == "setpoint: into a limit":
            return bool(np.isfinite(self.arm.oracle.upper).any())
        return name != "setpoint: stiffness or wrench" or bool(self.arm.robot.tools or self.rig.arm.variable.any())

    # --- Cycles -------------------------------------------------------------------------

    def run(self) -> Record:
        """Run all cycles; returns the record."""
        rig, rng = self.rig, self.rng
        rig.restart(self._start() if rng.random() < 0.8 else None)
        if rig.number("valid"):
            self._at = rig.loop.sent["drive_position"].copy()
        if (self._began != self.arm.quiet).any() and rng.random() < 0.6:
            self.stream_into_a_limit(alone=True)
        chances = rng.random(self.length)
        while rig.count < self.length:
            k = rig.count
            self.state = state_of(rig.numbers[-1]) if k else "waiting"
            if self._waits > 0:  # until a moved arm counts as elsewhere at its next motion
                self._waits -= 1
                if self._waits == 0:
                    self._input(str(rng.choice(["target", "trajectory"])))
            elif k == self._early_at:
                self.early()
                if rig.count == self.length:
                    break
            elif k < self._early_at or self._settles():  # until a fast stream goes on
                pass
            elif chances[k] < max(self._rate, self._rare.get(self.state, 0.0)):
                self._input()
                if rig.count == self.length:
                    break
            until, every = self._speeds
            if rig.count < until and rig.count % every == 0:
                rig.loop.speed(min(float(rng.uniform(0, 1.5)), 1.0))
            self._follow()
            self._cycle()
        self.marks.measured[:] = (self.marks.measured - self._zero) / self._scale
        return Record(rig)

    def _cycle(self) -> None:
        """Measure, and run a cycle."""
        self._measure()
        self.rig.run(self._next_step())

    def _next_step(self) -> int:
        """Time to the next cycle, ns."""
        return self.period

    def _times(self, count: int) -> Array:
        """Times of the next cycles since the present one, s (count,)."""
        return 1e-3 * np.arange(count)

    def _further_settings(self, effort: Array) -> dict[str, Any]:
        """Additional settings of a scene, for joints with ``effort``, N m (n,)."""
        return {}

    def _velocity(self, k: int) -> Array | float:
        """Velocities of the motors that are measured in cycle k, in drive units (m,)."""
        return 0.0

    def _start(self) -> Array:
        """Start positions, sometimes with a joint near a position limit."""
        q, rng, oracle = self._began, self.rng, self.arm.oracle
        joint, below = rng.integers(len(q)), rng.random() < 0.5
        limit = (oracle.lower if below else oracle.upper)[joint]
        if rng.random() < 0.3 and np.isfinite(limit):
            q[joint] = limit + rng.uniform(0.1, 0.4) * (1 if below else -1)
        return q

    def findings(self) -> list[Finding]:
        """Run, and ask the oracle."""
        return self.arm.oracle.findings(self.run(), self.settings, self.marks)

    def _settles(self) -> bool:
        """At times, nothing comes until the arm is held, or setpoints are lost: states that are rare otherwise."""
        if self._hush > 0:
            self._hush = 0 if self.state in ("holding", "lost") else self._hush - 1
        elif self.state in ("following", "playing", "aiming", "stopping") and self.rng.random() < 0.04:
            self._hush, self._stream = 400, None
            how = self.rng.random()
            if how < 0.25:
                self.stop()
            elif how < 0.75:
                self.lose()
        return self._hush > 0

    def _input(self, kind: str = "") -> None:
        """Give an input, by default any; a single setpoint has its cycle here."""
        # Mostly the rarest one of this state so far.
        if kind:
            pass
        elif self.rng.random() < 0.65:
            state, counts, names = self.state, self.counts, self._inputs
            order = self.rng.permutation(len(names)).tolist()
            kind = names[min(order, key=[counts[state, name] for name in names].__getitem__)]
        else:
            kind = (
                "contact"
                if self.touches and self.rng.random() < 0.3
                else str(self.rng.choice(self._inputs, p=self._weights))
            )
        if not kind.startswith("setpoint"):
            self.counts[self.state, kind] += 1
        self.marks.posted[self.rig.count] = kind.startswith(_POSTED)
        self.inputs[kind](self)

    def _follow(self) -> None:
        """Give the next setpoint of the stream."""
        if self._stream is None or self.rig.count % self._every:
            return
        if self._stream_at >= len(self._stream):
            self._stream = None if self.rng.random() < 0.5 else self._next_stream()
            self._stream_at = 0
            return
        self._give(self._stream[self._stream_at], self._kind)
        self._stream_at += self._every

    def _give(self, state: Array, kind: str, stamp: int | None = None) -> None:
        rig = self.rig
        rig.library.loop_rest(rig.address, 0)
        self._given[:] = state
        for name, row in self._more.items():
            rig.loop.given[name][:] = row
        self._refer(rig.now if stamp is None else stamp)
        self.counts[self.state, kind] += 1

    def _is_found(self) -> bool:
        """True if the arm is commanded at the position that it was moved to."""
        away = np.abs(self.rig.loop.sent["drive_position"] - self._at)
        return bool((away < 0.01 * np.abs(self._scale)).all())

    def _return(self) -> None:
        """Put the arm back to its command."""
        self._is_moved = False
        self._offset[:], self._away[:] = 0, 0

    def _is_somewhere(self) -> bool:
        """True if motor positions are finite."""
        return bool(self._at.dot(self._zeros) == 0)

    def _refer(self, stamp: int) -> None:
        """Use the written setpoint in the next cycle."""
        self.rig.library.loop_refer(self.rig.address, stamp)
        self.rig._refers = True

    def _measure(self) -> None:
        rig, loop, k = self.rig, self.rig.loop, self.rig.count
        last = rig.numbers[-1] if k else _NONE
        if last[_MODE] != 0:
            if self._hand is None:
                n = len(self._away)
                rate = self.rng.uniform(1, 3)
                most = self.rng.choice([0.4, 1.0])  # far enough to have springs of variable stiffness slack
                reach = self.rng.uniform(-most, most, n) * np.minimum(self.arm.velocity / rate, 1.0)
                self._hand = self._at.copy(), reach, np.array([rate]), k
            start, reach, (rate,), begin = self._hand
            way = reach * (1 - np.cos(rate * (self.period / 1e9) * (k - begin)))
            self._at = start + self._to_drives @ way[self.arm.oracle.motor_joint]
        else:
            self._hand = None
            if last[_VALID]:
                if self._is_moved and self._is_found():
                    self._return()
                self._at = loop.sent["drive_position"] + self._offset
        if self.touches:
            pushed = 0.0 if k >= self._push_until else 0.5
            self._sensed["q"][:] = loop.setpoint["q"] + self._away
            self._sensed["qd"][:] = loop.setpoint["qd"]
            self._sensed["tau"][:] = loop.command["tau"]
            self._sensed["tau"][0] += pushed * 40.0
            self._sensed["motor_position"][:] = self._at
            self._sensed["motor_velocity"][:] = self._velocity(k)
            rig.library.loop_sense(rig.address, rig.now, 7)
            self.marks.measured[k] = self._at
        elif k < self._blind_until or not self._is_somewhere():
            rig.library.loop_measure(rig.address, 0, 0)
        else:
            self._measured["motor_position"][:] = self._at
            self._measured["motor_velocity"][:] = self._velocity(k)
            # The first sample after a while is believed.
            if k == self._glitch_at and 0 <= rig.now - self._sampled < LONGEST_GAP:
                self._measured["motor_position"][self.rng.integers(len(self._at))] += self.rng.choice(
                    [-6.28, 1.0, 100.0]
                )
                self.marks.moved[k] = True
            self._sampled = rig.now
            self.marks.measured[k] = self._measured["motor_position"]
            rig.library.loop_measure(rig.address, 0, 1)

    # --- Inputs -------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Commanded positions (n,), bounded."""
        q = self.rig.q
        known = self.rig.count and self.rig.numbers[-1][_VALID] and np.isfinite(q).all()
        return np.clip(q, -10, 10) if known else self._began.copy()

    def _next_stream(self, to: Array | None = None, fast: bool = False) -> Array:
        """Clean motion from the commanded positions; a fast one is close to velocity limits."""
        rng, start = self.rng, self.q
        lower, upper = np.maximum(self.arm.oracle.lower, start - 2), np.minimum(self.arm.oracle.upper, start + 2)
        to = rng.uniform(np.minimum(lower, upper), np.maximum(lower, upper)) if to is None else to
        rate = rng.uniform(1.5, 6.0)
        way = to - start
        # Its largest velocity is 0.65 way rate.
        share = 0.9 if fast else rng.choice([0.4, 0.9])
        way *= min(1.0, float(np.min(share * self.arm.velocity / (0.65 * rate * np.abs(way) + 1e-9))))
        return clean(start, way, rate, self._times(800 if fast else int(rng.integers(50, 800))))

    def _begin_stream(self, states: Array, kind: str = "setpoint") -> None:
        self._stream, self._stream_at, self._kind, self._more = states, 0, kind, {}

    def stream(self) -> None:
        self._begin_stream(self._next_stream())

    def stream_to_a_limit(self) -> None:
        rng, start = self.rng, self.q
        upper = rng.random(len(start)) < 0.5
        ends = np.where(upper, self.arm.oracle.upper, self.arm.oracle.lower)
        beyond = rng.choice([0.1, 0.6]) * (2 * upper - 1)
        to = np.where(np.isfinite(ends) & (rng.random(len(start)) < 0.3), ends + beyond, start)
        way = to - start
        rate = min(6.0, float(np.min(0.9 * self.arm.velocity / (0.65 * np.abs(way) + 1e-9))))
        self._begin_stream(clean(start, way, rate, self._times(800)), "setpoint: to a limit")

    def stream_into_a_limit(self, alone: bool = False) -> None:
        """At constant velocity, until it is refused; at times, or alone, nothing else comes before."""
        rng, start, oracle = self.rng, self.q, self.arm.oracle
        above, below = oracle.upper - start, start - oracle.lower
        room = np.minimum(above, below)
        joints = np.flatnonzero(np.isfinite(room) & (room > 1e-3))
        if not len(joints):
            return self.stream()
        joint = int(joints[np.argmin(room[joints])] if rng.random() < 0.5 else rng.choice(joints))
        most, room, side = self.arm.velocity[joint], room[joint], 1 if above[joint] < below[joint] else -1
        acceleration = oracle.acceleration[joint] if np.isfinite(oracle.acceleration[joint]) else 5 * most
        acceleration *= rng.uniform(0.3, 0.9)
        # Speeding up takes 1.25 of v²/A, and braking half of it.
        velocity = min(float(rng.uniform(0.5, 0.9)) * most, float(np.sqrt(room * acceleration / 2)))
        rise = 2.5 * velocity / acceleration
        count = round(1e9 / self.period * (rise / 2 + (room + 0.1) / velocity))
        states = steady(start, joint, side * velocity, rise, self._times(count))
        self._begin_stream(states, "setpoint: into a limit")
        if count < 1200 and (alone or rng.random() < 0.05):
            self._waits = count

    def noisy_stream(self) -> None:
        states = self._next_stream()
        noise = float(self.rng.choice([1e-8, 6e-8, 1e-7]))
        path = states[:, 0] + noise * self.rng.normal(size=states[:, 0].shape)
        fields = [path]
        for _ in range(4):
            fields.append(np.diff(fields[-1], axis=0, prepend=fields[-1][:1]) / (self.period / 1e9))
        self._begin_stream(np.stack(fields, axis=1)[8:] if len(path) > 20 else states, "setpoint: noisy")

    def _present(self) -> Array:
        if self._stream is not None and self._stream_at < len(self._stream):
            return self._stream[self._stream_at].copy()
        return rest(self.q)

    def jump(self) -> None:
        x, rng = self._present(), self.rng
        x[0, rng.integers(x.shape[1])] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-3, 0.3)
        self._once(x, "setpoint: jump")

    def _once(self, x: Array, kind: str, stamp: int | None = None) -> None:
        """Use a single setpoint in place of the stream's."""
        self._give(x, kind, stamp)
        self._cycle()
        self._stream_at += 1

    def not_finite(self) -> None:
        x, rng = self._present(), self.rng
        x[rng.integers(5), rng.integers(x.shape[1])] = rng.choice([np.nan, np.inf, -np.inf, *self._huge])
        self._once(x, "setpoint: not finite")

    def rates(self) -> None:
        x, rng = self._present(), self.rng
        field = int(rng.integers(1, 5))
        x[field, rng.integers(x.shape[1])] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(
            *((-2, 1), (-1, 3), (0, 5), (2, 9))[field - 1]
        )
        self._once(x, "setpoint: rates")

    def early(self) -> None:
        """Early stamps, sometimes during a fast stream."""
        if self._early_at != self.rig.count and self.rng.random() < 0.3:
            self._begin_stream(self._next_stream(fast=True))
            self._every = 1
            fastest = int(np.abs(self._stream[:, 1] / self.arm.velocity).max(axis=1).argmax())
            self._early_at = self.rig.count + max(fastest - 45, 1)
            return
        ahead = 95 if self._early_at == self.rig.count else int(self.rng.integers(3, 95))
        if self._stream is not None and self._stream_at + ahead < len(self._stream):
            x = self._stream[self._stream_at + ahead].copy()
        else:
            x = self._present()
        self._once(x, "setpoint: early", self.rig.now + ahead * self.period)

    def late(self) -> None:
        behind = int(self.rng.integers(1, 700))
        x = (
            self._stream[max(self._stream_at - behind, 0)].copy()
            if self._stream is not None and len(self._stream) > self._stream_at
            else self._present()
        )
        self._once(x, "setpoint: late", self.rig.now - behind * self.period)

    def unstamped(self) -> None:
        x = self._present()
        if self.rng.random() < 0.5:
            x[0] += self.rng.normal(size=x.shape[1]) * 10.0 ** self.rng.uniform(-4, 0)
        self._once(x, "setpoint: unstamped", 0)

    def stiffness_or_wrench(self) -> None:
        """They step, and stay as long as the stream."""
        rng, loop = self.rng, self.rig.loop
        if self.rig.arm.variable.any() and rng.random() < 0.7:
            k = self.rig.table.arm.side.nominal_stiffness
            self._more = {"k": k * rng.uniform(0.6, 2.5, len(k))}
        elif self.arm.robot.tools:
            self._more = {"W": np.r_[0, 0, 0, rng.normal(size=3) * 10.0 ** rng.uniform(-1, 2)]}
            if len(loop.given["W"]) != 6:
                self._more = {}
        if self._stream is None:
            states = np.repeat(rest(self.q)[None], 100, axis=0)
            self._stream, self._stream_at, self._kind = states, 0, "setpoint: stiffness or wrench"
        else:
            self.counts[self.state, "setpoint: stiffness or wrench"] += 1

    def target(self) -> None:
        rng, q = self.rng, self.q
        reach = q + rng.uniform(-1, 1, len(q)) * 10.0 ** rng.uniform(-3, 0)
        if rng.random() < 0.2:
            reach[rng.integers(len(q))] = np.nan
        self.rig.target(np.where(np.isnan(reach), np.nan, np.clip(reach, self.arm.oracle.lower, self.arm.oracle.upper)))

    def far_target(self) -> None:
        self.rig.target(self.q + self.rng.normal(size=len(self.q)) * 3)

    def moving_target(self) -> None:
        rng, q = self.rng, self.q
        self.rig.target(q + rng.uniform(-0.3, 0.3, len(q)), self.arm.velocity * rng.uniform(-1.2, 1.2, len(q)))

    def chunk(self) -> None:
        rng, q = self.rng, self.q
        count = int(rng.integers(1, 8))
        t = np.cumsum(rng.uniform(0.01, 0.1, count))
        self.rig.target(
            q + np.cumsum(rng.normal(size=(count, len(q))) * 0.03, axis=0),
            None,
            t,
            self.rig.now - int(rng.integers(-50, 200)) * MS,
        )

    def _spline(self, start: Array) -> Any:
        rng = self.rng
        count = int(rng.integers(2, 4))
        points = [start]
        for _ in range(count - 1):
            to = points[-1] + rng.uniform(-0.6, 0.6, len(start))
            points.append(np.clip(to, self.arm.oracle.lower, self.arm.oracle.upper))
        ways = np.abs(np.diff(points, axis=0))
        # The velocity of degree nine is 2.46 of its mean.
        needed = (2.46 * ways / (rng.uniform(0.2, 0.95) * self.arm.velocity)).max(axis=1) + 0.15
        return straight(np.concatenate(([0.0], np.cumsum(needed))), np.array(points))

    def trajectory(self) -> None:
        self.rig.trajectory(self._spline(self.q))

    def trajectory_elsewhere(self) -> None:
        self.rig.trajectory(self._spline(self.q + 10.0 ** self.rng.uniform(-3, 0) * self.rng.normal(size=len(self.q))))

    def later_trajectory(self) -> None:
        self.rig.trajectory(self._spline(self.q), self.rig.now + int(self.rng.integers(-300, 300)) * MS)

    def empty_trajectory(self) -> None:
        """Empty trajectory, which stops trajectories and targets only."""
        self._silenced()
        last = self.rig.numbers[-1] if self.rig.count else _NONE
        self.marks.stop_asked[self.rig.count] = last[_PLAYING] or last[_AIMING]
        self.rig.empty_trajectory()

    def _silenced(self) -> None:
        """End the stream sometimes, so that the next motion lasts."""
        if self.rng.random() < 0.5:
            self._stream = None

    def stop(self) -> None:
        self._silenced()
        self.marks.stop_asked[self.rig.count] = True
        self.rig.stop()

    def lose(self) -> None:
        self._silenced()
        self.marks.lost[self.rig.count] = True
        self.rig.loop.act("lose")

    def pause(self) -> None:
        self.rig.loop.act("pause")

    def resume(self) -> None:
        self.rig.loop.act("resume")

    def speed(self) -> None:
        """At times it is streamed: by a slider, or by a monitor of distances."""
        self.rig.loop.speed(min(float(self.rng.choice([0.0, 1.0, 1.5, self.rng.uniform(0, 1.5)])), 1.0))
        if self.rng.random() < 0.3:
            self._speeds = self.rig.count + 500, int(self.rng.choice([10, 50]))

    def payload(self) -> None:
        rng = self.rng
        mass = float(rng.choice([0.0, 0.3, 1.0, 3.0]))
        body = np.r_[mass, rng.uniform(-0.05, 0.05, 3) * (mass > 0), np.array([1, 0, 0, 1, 0, 1]) * 2e-3 * mass]
        rig = self.rig
        rig.library.loop_post_payload(rig.address, 0, body.ctypes.data, float(rng.choice([0.02, 0.05, 0.3])))

    def _mode(self, mode: int) -> None:
        self.rig.library.loop_post_mode(self.rig.address, mode)

    def contact(self) -> None:
        self._silenced()
        self._push_until = self.rig.count + int(self.rng.integers(5, 80))

    def silence(self) -> None:
        self._stream = None

    def restart(self) -> None:
        """Restart at another position: the arm was moved by hand while the drives were off."""
        rng, rig = self.rng, self.rig
        way = rng.normal(size=len(self._away)) * rng.choice([0.0, 0.3])
        rig.now += int(rng.integers(1, 2000)) * MS
        self._return()
        self._stream = None
        rig.library.loop_measure(rig.address, 0, 0)
        self.marks.restarted[rig.count] = True
        if rng.random() < 0.25:
            rig.restart(None)
        else:
            rig.restart(np.clip(self.q + way, self.arm.oracle.lower, self.arm.oracle.upper))

    def restart_soon(self) -> None:
        """As a controller manager restarts one, of an arm that follows."""
        rig = self.rig
        if self.touches or not rig.count or not self._is_somewhere():
            return
        self._measured["motor_position"][:] = self._at
        self._measured["motor_velocity"][:] = self._velocity(rig.count)
        rig.library.loop_measure(rig.address, 0, 1)
        self.marks.restarted[rig.count] = True
        self._stream = None
        rig.library.loop_restart(rig.address, rig.now)

    def clock_back(self) -> None:
        self._jump(-float(10.0 ** self.rng.uniform(-3, 3)))

    def clock_forward(self) -> None:
        self._jump(float(10.0 ** self.rng.uniform(0, 3)))

    def _jump(self, time: float) -> None:
        self.rig.now += round(time * 1e9)
        self.marks.jumped[self.rig.count] = True

    def stall(self) -> None:
        self._jump(float(self.rng.choice([0.03, 0.096, 0.3, 1.0, 3.0])))

    def late_cycle(self) -> None:
        self._jump(float(self.rng.uniform(0.001, 0.02)))

    def no_sensors(self) -> None:
        self._blind_until = self.rig.count + int(self.rng.integers(5, 300))

    def encoder_jump(self) -> None:
        self._glitch_at = self.rig.count

    def moved(self) -> None:
        """The arm is elsewhere, or back."""
        rng = self.rng
        self._is_moved = True
        self._away[:] = 0 if self._away.any() else rng.normal(size=len(self._away)) * 10.0 ** rng.uniform(-3, 0)
        self._offset = self._to_drives @ self._away[self.arm.oracle.motor_joint]
        self.marks.moved[self.rig.count] = True
        if rng.random() < 0.5:
            self._stream, self._waits = None, 250


INPUTS: dict[str, Callable[[Scene], None]] = {
    "setpoint": Scene.stream,
    "setpoint: to a limit": Scene.stream_to_a_limit,
    "setpoint: into a limit": Scene.stream_into_a_limit,
    "setpoint: noisy": Scene.noisy_stream,
    "setpoint: jump": Scene.jump,
    "setpoint: not finite": Scene.not_finite,
    "setpoint: rates": Scene.rates,
    "setpoint: early": Scene.early,
    "setpoint: late": Scene.late,
    "setpoint: unstamped": Scene.unstamped,
    "setpoint: stiffness or wrench": Scene.stiffness_or_wrench,
    "target": Scene.target,
    "target: far": Scene.far_target,
    "target: moving": Scene.moving_target,
    "chunk": Scene.chunk,
    "trajectory": Scene.trajectory,
    "trajectory: elsewhere": Scene.trajectory_elsewhere,
    "trajectory: later": Scene.later_trajectory,
    "empty trajectory": Scene.empty_trajectory,
    "stop": Scene.stop,
    "loss": Scene.lose,
    "silence": Scene.silence,
    "pause": Scene.pause,
    "resume": Scene.resume,
    "speed": Scene.speed,
    "payload": Scene.payload,
    "mode position": lambda scene: scene._mode(0),
    "mode impedance": lambda scene: scene._mode(1),
    "mode gravity": lambda scene: scene._mode(2),
    "contact": Scene.contact,
    "restart": Scene.restart,
    "restart soon": Scene.restart_soon,
    "clock back": Scene.clock_back,
    "clock forward": Scene.clock_forward,
    "stall": Scene.stall,
    "late cycle": Scene.late_cycle,
    "no sensors": Scene.no_sensors,
    "encoder jump": Scene.encoder_jump,
    "arm moved": Scene.moved,
}
"""Inputs by kind."""

Scene.inputs = INPUTS

_POSTED = ("target", "chunk", "trajectory", "payload")


def table(counts: Counter[tuple[str, str]], kinds: Iterable[str] = INPUTS) -> str:
    """Text: how often each input came in each state."""
    lines = [f"{'':30}" + "".join(f"{state:>12}" for state in STATES)]
    for kind in kinds:
        lines.append(f"{kind:30}" + "".join(f"{counts[state, kind]:12,}" for state in STATES))
    return "\n".join(lines)


class Result(NamedTuple):
    """Findings by seed, and inputs by state."""

    findings: dict[int, list[Finding]]
    counts: Counter[tuple[str, str]]

    def summary(self) -> str:
        """Text: number of failures by rule, first scenes with a failure, and worst case with its seed."""
        rows: dict[str, list[tuple[float, int, Finding]]] = {}
        first: dict[str, list[int]] = {}
        for seed, found in self.findings.items():
            first.setdefault(min(found, key=lambda x: x.cycle).rule, []).append(seed)
            for x in found:
                ratio = x.value / x.bound if x.bound > 0 else np.inf
                rows.setdefault(x.rule, []).append((ratio if np.isfinite(ratio) else np.inf, seed, x))
        lines = []
        for rule, cases in sorted(rows.items()):
            _, seed, worst = max(cases, key=lambda case: case[0])
            scenes, causes = len({seed for _, seed, _ in cases}), first.get(rule, [])
            some = f", first in {len(causes)} ({' '.join(map(str, causes[:8]))})" if causes else ""
            lines.append(f"{rule}: {len(cases)} cycles of {scenes} scenes{some}, worst in seed {seed}, {worst}")
        return "\n".join(lines)


def run(seeds: Iterable[int], make: type[Scene] = Scene) -> Result:
    """Run scenes by their seeds."""
    findings: dict[int, list[Finding]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        scene = make(seed)
        if found := scene.findings():
            findings[seed] = found
        counts += scene.counts
    return Result(findings, counts)


def main(arguments: Sequence[str], make: type[Scene] = Scene) -> None:
    for argument in arguments:
        first, _, last = argument.partition(":")
        result = run(range(int(first), int(last)) if last else [int(first)], make)
        print(result.summary())
        if last:
            print(table(result.counts, make.inputs))
        else:
            scene = make(int(first))
            print(scene.name, scene.settings.others)
            for found in result.findings.get(int(first), [])[:40]:
                print(found)


if __name__ == "__main__":
    main(sys.argv[1:])
