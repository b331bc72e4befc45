# SPDX-License-Identifier: Apache-2.0
"""Efforts that are sent of a command, of eom/gate.hpp."""

from typing import NamedTuple

import numpy as np

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.control.setpoint_to_command import EvaluatedCommand
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.elastic.limits import TOLERANCE
from eom_dynamics.elastic.motor_programs import SETTLED, SHAFT
from reference.payload_blend import falling

PASSAGE, LONGEST, STEP = 0.01, 0.3, 0.015
"""Least and longest time in which efforts pass to those of another leader, s; share of limits by which they step."""


WITHIN = 0.98
"""Share of limits of effort rates that efforts which pass use beside the command, as rates grow within a cycle."""

LARGEST = 1e6
"""Effort, N m or N, that limits are still more than the rounding of."""


class _Sent(NamedTuple):
    """The last command of a time, ns, its leader, what passed with it, N m or N, since when, ns, how long, s, and the
    share of time that passes."""

    time: int
    leader: str
    command: EvaluatedCommand
    begin: int
    passing: tuple[Array, Array]
    passage: float
    share: float


class Gate:
    """Efforts of motors and joints: of another leader they begin as those before lead to; all are within limits."""

    def __init__(self, arm: ElasticArm, policy: str) -> None:
        self._arm, self._policy, self._limits = arm, policy, LimitCheck(arm)
        # Of motors, and of those of a joint together.
        self._most = self._limits.ends["motor_effort"][1], self._limits.motor_effort * (1 + TOLERANCE)
        self._past: list[_Sent] = []

    def renew(self) -> None:
        """Take the next command to be of another leader, as of a stop after another one."""
        self._past = [x._replace(leader="") for x in self._past]

    def efforts(self, command: EvaluatedCommand, leader: str, time: int, cycle: float) -> tuple[Array, Array]:
        """Efforts of motors and joints of a command at a time, ns, in place of any of that time; in a cycle, s."""
        self._past = [x for x in self._past[-2:] if x.time < time]
        motors, joints = command.motors[3], command.efforts[0]
        last = self._past[-1] if self._past else None
        begin, passing, passage = last[3:6] if last else (0, (0 * motors, 0 * joints), PASSAGE)
        share = 1.0
        if last:  # slower where the command's own rates leave less
            since, step = 1e-9 * (last.time - begin), time - last.time
            passes = np.abs(passing[1] * falling(since, passage)[1])
            rest = np.maximum(WITHIN * self._limits.ends["taud"][1] - np.abs(command.efforts[1]), 0)
            if 0 < since < passage:
                share = np.min(np.divide(rest, passes, out=np.ones_like(rest), where=passes > rest), initial=1.0)
                begin += step - int(np.floor((share + last.share) / 2 * step + 0.5))
        if last and leader != last.leader:
            share = 1.0
            begin, passing = time, self._beyond(last, command, time, cycle)
            # Its steepest rate, 15/8 of the mean one, is half the limit of effort rates.
            rates = 2 * 15 / 8 * np.abs(passing[1]) / self._limits.ends["taud"][1]
            passage = 1e-9 * round(1e9 * np.clip(rates.max(), PASSAGE, LONGEST))
        self._past.append(_Sent(time, leader, command, begin, passing, passage, share))
        left = falling(1e-9 * (time - begin), passage)[0]
        motors, joints = (x + left * more for x, more in zip((motors, joints), passing, strict=True))
        if self._policy != "ignore":
            motors, joints = self._clipped(motors, joints, command, leader)
        return motors, joints

    def within(self, command: EvaluatedCommand, leader: str) -> EvaluatedCommand:
        """A command beyond limits with the efforts that are within those that are not only reported."""
        if self._policy not in ("refuse", "warn"):
            return command
        motors, joints = self._clipped(command.motors[3], command.efforts[0], command, leader)
        return command._replace(
            efforts=np.stack([joints, *command.efforts[1:]]), motors=np.stack([*command.motors[:3], motors])
        )

    def _beyond(self, last: _Sent, command: EvaluatedCommand, time: int, cycle: float) -> tuple[Array, Array]:
        """What efforts without friction step by, beyond a share of their limits and the last rates."""
        left = falling(1e-9 * (time - last.begin), last.passage)[0]
        efforts = [(self._frictionless(x), x.efforts[0]) for x in (last.command, command)]
        rate, of_motors = last.command.efforts[1], np.minimum(self._most[0], self._most[1][self._arm.motor_joint])
        rates, limits = (self._at_joints(rate), rate), (of_motors, self._limits.largest["effort"])
        most = np.full(len(of_motors), np.inf), self._limits.ends["taud"][1] * cycle / 2
        found = []
        for before, now, passing, limit, speed, x in zip(*efforts, last.passing, limits, rates, most, strict=True):
            step, allowed = before + left * passing - now, np.minimum(STEP * limit + np.abs(speed) * cycle, x)
            found.append(np.where(np.isfinite(allowed), step - np.clip(step, -allowed, allowed), 0.0))
        return found[0], found[1]

    def _frictionless(self, command: EvaluatedCommand) -> Array:
        """Motor efforts, less the friction and losses that motors at rest would not have; clipped ones as much less."""
        arm, (q, qd, qdd) = self._arm, command.state[:3]
        given = arm.functions.commands(command.stiffness, None, ())
        if arm.side.presliding.any():
            given.append(np.full(len(arm.motor_names), SETTLED))
        _, rate, _, moving = arm.functions("motors", q, qd, qdd, *command.efforts, *given)
        sides = np.array(arm.side.joint_sides(list(rate)))
        mean = np.array([sides[arm.motor_joint == joint].mean() for joint in range(len(q))])
        resting = arm.functions("motors", q, qd - mean, qdd, *command.efforts, *given)[3]
        effort = command.motors[3]
        share = np.abs(np.divide(effort, moving, out=np.ones_like(effort), where=moving != 0))
        return effort - (moving - resting) * np.minimum(share, 1.0)

    def _clipped(self, motors: Array, joints: Array, command: EvaluatedCommand, leader: str) -> tuple[Array, Array]:
        """Within limits, which motors have as well; what was commanded beyond those of joints may be only reported."""
        reports, arm = self._policy == "warn", self._arm
        plain, feedforward = command.motors[3], command.efforts[0]
        within = np.clip(joints, *_widened(self._limits.largest["effort"], reports * feedforward))
        motors = motors + self._at_joints(within - joints)
        exceeds = np.any(np.abs(motors) > self._most[0])
        if self._policy == "clip" or leader == "stop" or exceeds or np.any(motors != plain):
            motors = np.clip(motors, -LARGEST, LARGEST)
            sums, allowed = (np.array(arm.side.motor_sums(list(x))) for x in (motors, reports * plain))
            motors = motors + self._at_joints(np.clip(sums, *_widened(self._most[1], allowed)) - sums)
            motors = arm.functions("drive", command.motors[1], motors)[SHAFT.index("clipped_effort")]
        return motors, within

    def _at_joints(self, efforts: Array) -> Array:
        """Efforts of motors for those at their joints."""
        return np.array(self._arm.side.motor_shares(list(efforts)))


def _widened(most: Array, allowed: Array) -> tuple[Array, Array]:
    """Range of efforts up to limits, or up to what is allowed beyond them."""
    return np.minimum(-most, allowed), np.maximum(most, allowed)
