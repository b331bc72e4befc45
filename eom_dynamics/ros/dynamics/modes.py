# SPDX-License-Identifier: Apache-2.0
"""Modes of the arm: cycles with each measured position while it is on springs, or led by hands."""

from __future__ import annotations

from collections.abc import Callable

from ...arrays import unit
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import MODES
from ...terminal import printable
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .measured_arm import MeasuredArm

GAINS = ("stiffness", "tool_stiffness", "damping_ratio")

# Time between cycles without samples, s; with more than LONGEST_RESPONSE_STEP, they would count less.
_LOOK = 0.02


class Modes:
    """Control mode, by the parameter ``mode``.

    Each measured sample makes a cycle of the loop. Without samples, cycles go on: after 0.1 s in the mode position,
    with a feedforward that carries the arm, until another mode is requested.
    """

    def __init__(
        self, node: RobotNode, measured: MeasuredArm, clock: WatchedClock, publish: Callable[[SetpointLoop, int], bool]
    ) -> None:
        self._node, self._measured, self._clock, self._publish = node, measured, clock, publish
        self._loop: SetpointLoop | None = None
        self._mode, self._last = node.get_parameter("mode").value, 0
        self._said, self._ended = MODES[0], False
        measured.on_sample.append(self._cycle)
        self._timer = node.punctual.create(node, _LOOK, self._look)

    def take(self, loop: SetpointLoop | None) -> None:
        """Lead the arm of a loop from now on, with the stiffness of the parameters."""
        self._loop = loop
        if loop is not None:
            self.change(self._mode)

    def change(self, mode: str) -> None:
        """Change the mode once measurements suffice; StateError if parameters do not."""
        complies, loop = mode != MODES[0], self._loop
        if loop is not None:
            loop.configure(mode=mode, **{name: self._node.get_parameter(name).value for name in GAINS})
            loop.loop.change_mode(mode)
        self._mode = mode
        rigid = loop is not None and bool(loop.arm.rigid.all())
        self._measured.need("mode", links=complies and rigid, motors=complies and not rigid)
        if complies:
            self._last = self._clock.now()
            self._timer.reset()

    def _cycle(self) -> None:
        """Make a cycle after a sample, or for lack of one."""
        loop = self._loop
        self._say()
        if loop is None or (self._mode == MODES[0] and not loop.record.mode):
            return
        now = self._clock.now()
        if not loop.record.valid:
            loop.loop.restart(now=now)
        self._last = now
        self._publish(loop, now)
        self._say()
        if beyond := self.beyond:
            self._node.warn("limit", beyond)

    def _say(self) -> None:
        """Log a change of the mode, and its end for lack of measurements, also by the cycle of a setpoint."""
        if self._loop is not None and (mode := MODES[self._loop.record.mode]) != self._said:
            self._node.get_logger().info(f"mode: {self._said} -> {mode}")
            self._said = mode
        ended, why = self._ended, self.blinded
        self._ended = bool(why)
        if why and not ended:
            self._node.get_logger().error(why)

    def _look(self) -> None:
        """Make a cycle if there was no sample for a while."""
        begun = self._loop is not None and (self._loop.record.mode or self.blinded)
        if self._mode == MODES[0] and not begun:
            self._timer.cancel()
        elif begun and 1e-9 * (self._clock.now() - self._last) > _LOOK / 2:
            self._cycle()

    @property
    def blinded(self) -> str:
        """Why the mode has ended, or has not begun; else empty."""
        if self._loop is None or self._mode == MODES[0] or not self._loop.record.blinded:
            return ""
        missing = self._measured.missing or "motors are measured again, or have jumped"
        state = f"{self._mode} has ended, feedforward alone carries the arm and does not hold it"
        return printable(f"mode {state}: {missing}; set the parameter mode again")

    @property
    def beyond(self) -> str:
        """Which joint was led beyond its limits, as a clause; else empty."""
        joint = self._loop.record.beyond_limit if self._loop is not None else 0
        if self._loop is None or not joint:
            return ""
        robot = self._loop.arm.robot
        name, of = robot.joint_names[joint - 1], robot.independent_joints[joint - 1]
        ends = f"{of.limits.lower:.4g} to {of.limits.upper:.4g} {unit('position', of.type)}"
        return f"{printable(name)} is led beyond its limits, {ends}"

    def report(self) -> dict[str, str]:
        """Values for diagnostics."""
        if self._loop is None or (self._mode == MODES[0] and not self._loop.record.mode):
            return {}
        return {"mode": MODES[self._loop.record.mode], "mode, wanted": self._mode}
