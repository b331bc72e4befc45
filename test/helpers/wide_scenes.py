# SPDX-License-Identifier: Apache-2.0
"""Random scenes with more arms and inputs: measured velocities, controllers in front, periods of 0.25 to 8 ms, resets.

``python test/helpers/wide_scenes.py SEED [FIRST:LAST …]`` runs scenes again, and prints their findings.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from loop_rig import MS, straight
from motion_rules import PENDING, Inputs, MotionRules
from random_scenes import CYCLES, INPUTS, ROBOTS, Scene, _limited, main
from sent_oracle import Finding

from eom_dynamics import Robot, load_robot
from eom_dynamics.actuators import springs
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import Limits

# --- Arms -------------------------------------------------------------------------------------------------------------


def _soft() -> Robot:
    """Springs of 60 and 25 N m/rad."""
    robot = load_robot("planar_2r")
    pairs = zip(robot.joints, (60.0, 25.0), strict=True)
    robot = replace(robot, joints=tuple(replace(joint, spring=springs.LinearSpring(k)) for joint, k in pairs))
    row = {"lower": -2.5, "upper": 2.5, "velocity": 2.0, "acceleration": 10.0, "effort": 45.0, "effort_rate": 600.0}
    return _limited(robot, "soft", row)


def _rubbing() -> Robot:
    """Dry friction of the joints in their efforts."""
    robot = load_robot("sea_planar_2r")
    joints = tuple(replace(joint, friction=0.3, damping=0.5) for joint in robot.joints)
    row = {"lower": -2.5, "upper": 2.5, "velocity": 4.0, "acceleration": 25.0}
    return _limited(replace(robot, joints=joints, joint_friction=True), "rubbing", row)


def _low_voltage() -> Robot:
    """Voltages limit the speed to about 3 rad/s."""
    robot = load_robot("sea_planar_2r")
    joints = tuple(
        replace(joint, actuator=replace(joint.actuator, motor=replace(joint.actuator.motor, voltage_limit=18.0)))
        for joint in robot.joints
    )
    return _limited(replace(robot, joints=joints), "low_voltage", {"lower": -2.5, "upper": 2.5, "acceleration": 25.0})


def _fourteen() -> Robot:
    """Two pandas on one base."""
    robot = load_robot("panda")
    pose = robot.joints[0].reference_pose.copy()
    pose[1, 3] += 0.8
    second = [
        replace(joint, name=f"right_{joint.name}", parent=joint.parent + 7 if joint.parent >= 0 else -1)
        for joint in robot.joints
    ]
    second[0] = replace(second[0], reference_pose=pose)
    return replace(robot, name="fourteen", joints=(*robot.joints, *second))


def _unlimited() -> Robot:
    robot = load_robot("planar_2r")
    return replace(robot, name="unlimited", joints=tuple(replace(joint, limits=Limits()) for joint in robot.joints))


WIDE_ROBOTS: dict[str, Callable[[], Robot]] = {
    **ROBOTS,
    **{"soft": _soft, "rubbing": _rubbing, "low_voltage": _low_voltage, "fourteen": _fourteen},
    **{"unlimited": _unlimited, "dual_arm": lambda: load_robot("dual_arm")},
}

PERIODS = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0, 8.0)
"""Nominal periods of cycles, ms."""


BENDS, BEND = "position by velocity", 1e-4
"""Rule of the oracle for cycles of 1 ms, and the largest difference of shorter cycles, in which a stop begins, rad."""


@cache
def _rules_of(oracle: Any) -> MotionRules:
    return MotionRules(oracle)


# --- Inputs -----------------------------------------------------------------------------------------------------------


class WideScene(Scene):
    """Random inputs of a loop with all kinds of hosts, samples and arms, by a seed."""

    robots = WIDE_ROBOTS

    def __init__(self, seed: int, cycles: int = CYCLES) -> None:
        self.more = more = np.random.default_rng((seed, 1))
        self.period = round(MS * float(more.choice(PERIODS)))
        jitter = float(more.choice([0.0, 0.02, 0.3]))
        self._steps = np.rint(self.period * (1 + jitter * more.uniform(-1, 1, 3 * cycles))).astype(np.int64)
        self._clock = np.concatenate(([0], np.cumsum(self._steps)))
        super().__init__(seed, cycles)
        n, m = self.arm.robot.n, len(self.arm.oracle.motor_joint)
        self.marks: Inputs = Inputs.none(cycles, m, n)
        self._sender = str(more.choice(["refer", "follow", "pursue"], p=[0.5, 0.25, 0.25]))
        self._ahead = float(more.choice([0.0, 2e-3]))
        self._with_rates = more.random() < 0.5
        self._noise = float(more.choice([0.0, 1e-3, 0.02]))
        self._velocity_scale = self.arm.oracle.units["drive_velocity"][0]
        self._outlier_at = self._stale_until = -1
        self._stale: tuple[Array, Array] | None = None
        self._alone, self._quiet, self._second = 0, 0, -1
        links = {"q": n, "qd": n}
        self._links = self.rig.loop.vectors("measured", links) if self._has_link_gains or more.random() < 0.3 else None

    def _further_settings(self, effort: Array) -> dict[str, Any]:
        more, n = self.more, len(effort)
        settings: dict[str, Any] = {
            "stop_duration": float(10 ** more.uniform(-2, 0)),
            "start_tolerance": float(10 ** more.uniform(-3, -0.7)),
        }
        self._has_link_gains = more.random() < 0.15 and not self.touches
        if self._has_link_gains:
            settings |= {"link_kp": np.full(n, 2 * effort.min()), "link_kd": np.full(n, 0.02 * effort.min())}
        return settings

    def _has(self, name: str) -> bool:
        if name.startswith("clock: "):
            return not self.rig.hosted
        if name == "trajectory: beyond":
            return bool(np.isfinite(self.arm.oracle.upper).any())
        return super()._has(name)

    def findings(self) -> list[Finding]:
        record = self.run()
        found = _rules_of(self.arm.oracle).findings(record, self.settings, self.marks)  # before the oracle adds marks
        found = [x for x in found if x.rule not in PENDING]
        more = self.arm.oracle.findings(record, self.settings, self.marks)
        return found + [x for x in more if x.rule != "range" and not (x.rule.startswith(BENDS) and x.value < BEND)]

    # --- Cycles ---------------------------------------------------------------------------

    def _next_step(self) -> int:
        return int(self._steps[self.rig.count])

    def _times(self, count: int) -> Array:
        k = self.rig.count
        return (self._clock[k : k + count] - self._clock[k]) * 1e-9

    def _settles(self) -> bool:
        k = self.rig.count
        if self._alone > 0:
            self._alone -= 1
            if self.state in ("impedance", "led by hand"):
                self._mode(0)
            near = np.abs(self.rig.q).max() < 9  # targets of continuous joints mean their nearest turn
            if near and not self.rig.loop.state[1:].any() and self.state not in ("waiting", "paused", "in contact"):
                self._alone, self._quiet = 0, min(2000, round(2.5e9 / self.period))
                self._second = k + round(self.more.uniform(0.1, 0.5) * 1e9 / self.period * self.more.choice([1, 1e3]))
                self._post_alone()
            return True
        if self._quiet > 0:
            self._quiet -= 1
            self.marks.undisturbed[k] = True
            if k == self._second and self.state == "aiming":
                self._post_alone(second=True)
            return True
        return super()._settles()

    def _post_alone(self, second: bool = False) -> None:
        oracle, q, more = self.arm.oracle, self.q, self.more
        way = more.uniform(-1, 1, len(q)) * 10.0 ** more.uniform(-2, 0)
        target = np.clip(q + way, oracle.lower, oracle.upper)
        if not second:
            self.marks.target[self.rig.count] = target
        self.marks.undisturbed[self.rig.count] = True
        self.marks.posted[self.rig.count] = True
        self.rig.target(target)

    def _refer(self, stamp: int) -> None:
        rig = self.rig
        if self._sender == "pursue":
            first = 1 if not self._with_rates else 3
            self._given[first:] = 0
            rig.library.loop_pursue(rig.address)
            self.marks.posted[rig.count] = True
        elif self._sender == "follow":
            rig.library.loop_follow(rig.address, stamp, self._ahead)
            rig._refers = True
        else:
            super()._refer(stamp)

    def _measure(self) -> None:
        super()._measure()
        rig, k = self.rig, self.rig.count
        blind = k < self._blind_until or not self._is_somewhere()
        if self.touches or blind:
            return
        rows = self._measured["motor_position"], self._measured["motor_velocity"]
        if k < self._stale_until and self._stale is not None:
            for row, old in zip(rows, self._stale, strict=True):
                row[:] = old
            self.marks.measured[k] = rows[0]
        self._stale = rows[0].copy(), rows[1].copy()
        if self._links is not None:
            q, qd = rig.loop.setpoint["q"] + self._away, rig.loop.setpoint["qd"]
            if self._hand is not None:
                _, reach, (rate,), begin = self._hand
                t = rate * (self.period / 1e9) * (k - begin)
                q, qd = rig.loop.setpoint["q"], reach * rate * np.sin(t)
            self._links["q"][:] = q
            self._links["qd"][:] = qd + self._noise * self.more.normal(size=len(q))
            rig.library.loop_measure(rig.address, int(self._hand is None), 1)

    def _velocity(self, k: int) -> Array | float:
        """Velocity of the arm, with noise and outliers."""
        if self._hand is not None:
            _, reach, (rate,), begin = self._hand
            qd = reach * rate * np.sin(rate * (self.period / 1e9) * (k - begin))
            velocity = np.linalg.solve(self.arm.oracle.sides, qd[self.arm.oracle.motor_joint]) * self._velocity_scale
        elif k and self.rig.numbers[-1][1]:
            velocity = self.rig.loop.sent["drive_velocity"].copy()
        else:
            velocity = np.zeros(len(self._scale))
        noise = self._noise * self.more.normal(size=len(velocity))
        if k == self._outlier_at:
            noise[self.more.integers(len(noise))] = self.more.choice([-1, 1]) * self.more.uniform(20, 50)
            self.marks.outlier[k] = True
        return velocity + noise * np.abs(self._velocity_scale)

    # --- Inputs ---------------------------------------------------------------------------

    def velocity_outlier(self) -> None:
        if 0 <= self.rig.now - self._sampled < 20 * self.period or self.touches:
            self._outlier_at = self.rig.count

    def stale_samples(self) -> None:
        self._stale_until = self.rig.count + int(self.more.integers(2, 60))

    def trajectory_beyond(self) -> None:
        """A joint passes the end of its range between two points."""
        more, q, oracle = self.more, self.q, self.arm.oracle
        ends = np.where(more.random(len(q)) < 0.5, oracle.upper, oracle.lower)
        joint = int(more.choice(np.flatnonzero(np.isfinite(ends)))) if np.isfinite(ends).any() else 0
        to = q.copy()
        to[joint] = ends[joint] + np.sign(ends[joint] - q[joint]) * more.uniform(0.05, 0.6)
        if not np.isfinite(to).all():
            return
        needed = 2.46 * np.abs(to - q)[joint] / (more.uniform(0.4, 0.95) * self.arm.velocity[joint]) + 0.15
        self._stream = None
        self.rig.trajectory(straight([0.0, needed], np.stack([q, to])))

    def target_alone(self) -> None:
        """One target for an arm at rest, and nothing else until it is reached."""
        self._stream = None
        self.lose()
        self.resume()
        self._alone = 600

    def restart_measured(self) -> None:
        """From motors whose velocities are those of a motion, or wrong."""
        rig, more = self.rig, self.more
        if not self._is_somewhere():
            return
        rig.now += int(more.integers(1, 2000)) * MS
        self._return()
        self._stream = self._hand = None
        self._outlier_at = rig.count if more.random() < 0.5 else -1
        self._measured["motor_position"][:] = self._at
        self._measured["motor_velocity"][:] = self._velocity(rig.count)
        rig.library.loop_measure(rig.address, 0, 1)
        self.marks.restarted[rig.count] = True
        rig.library.loop_restart(rig.address, rig.now if more.random() < 0.5 else 2**63 - 1)
        self._outlier_at = -1

    def clock_to_zero(self) -> None:
        """A simulation begins again, at times at a small time."""
        self._to(int(self.more.choice([0, self.period, 10**9])))

    def clock_below_zero(self) -> None:
        self._to(-int(self.more.integers(1, 10**10)))

    def _to(self, now: int) -> None:
        self.rig.now = now
        self.marks.jumped[self.rig.count] = True


WideScene.inputs = INPUTS | {
    "velocity outlier": WideScene.velocity_outlier,
    "stale samples": WideScene.stale_samples,
    "trajectory: beyond": WideScene.trajectory_beyond,
    "target: alone": WideScene.target_alone,
    "restart: measured": WideScene.restart_measured,
    "clock: to zero": WideScene.clock_to_zero,
    "clock: below zero": WideScene.clock_below_zero,
}

if __name__ == "__main__":
    main(sys.argv[1:], WideScene)
