# SPDX-License-Identifier: Apache-2.0
"""Pace of a motion along its path, for planners: what a stop takes, and how fast each place may be passed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import number_by_rule, positive, real_array
from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.elastic_arm import require_arm
from ..exceptions import TrajectoryError
from ..trajectory import Samples, Spline, check
from .control_loop import ControlLoop
from .robot_table import RobotTable
from .settings import FASTEST_PACE, Status

_START = 10**9
"""Time 0 of the motion on the clock of the loop, ns."""


class PathStop(NamedTuple):
    """A stop amid a motion.

    Attributes:
        duration: until the arm rests, s.
        on_path: whether it stays on the path; without, it is a polynomial of the joints.
        excess: over limits, relative to half their ranges: zero within them; infinite if no stop is possible.
    """

    duration: float
    on_path: bool
    excess: float


class PathTime:
    """Time as an actuator: a motion q(s) is played with a path parameter s(t) whose pace ṡ changes, q(s(t)).

    With primes for derivatives by s, the chain rule gives what motors are commanded:

        q̇ = q′ ṡ,   q̈ = q″ ṡ² + q′ s̈,   q⃛ = q‴ ṡ³ + 3 q″ ṡ s̈ + q′ s⃛,
        q⁗ = q⁗′ ṡ⁴ + 6 q‴ ṡ² s̈ + q″ (3 s̈² + 4 ṡ s⃛) + q′ s⁗

    The control loop changes the pace by a trapezoid of s̈ with smooth edges, so that s … s⁗ are continuous: the shortest
    that is found within limits of joints and motors. This answers as the loop does.

    Args:
        motion: as it is played, at the pace 1.
        arm: that plays it.
        shortest: duration of the shortest stop, s: ``stop_duration`` of the loop; where a motion ends moving, those
            that stay on its path may be shorter.
        period: of its cycles, at least 1e-6 s, over which it seeks a change of pace.

    Raises:
        TrajectoryError: the motion is not a spline, or not one of the arm's joints.
        KernelError: a loop cannot be compiled, see :class:`.ControlLoop`.
    """

    def __init__(self, motion: Spline, arm: ElasticArm, *, shortest: float = 0.01, period: float = 1e-3) -> None:
        """Prepare a loop that plays the motion."""
        require_arm(arm)
        if not isinstance(motion, Spline):
            raise TrajectoryError(f"the motion must be a Spline, is {type(motion).__name__}: sample it, see Spline")
        if motion.n != arm.robot.n:
            raise TrajectoryError(f"the motion has {motion.n} joints, {arm.robot.name} has {arm.robot.n}")
        self.motion, self.arm = motion, arm
        self._period = number_by_rule(period, "period", rule="[1e-6, inf)")
        self._loop = ControlLoop(RobotTable(arm))
        # So that a motion begins amid its path.
        self._loop.configure(limits="ignore", stop_duration=positive(shortest, "shortest"), start_tolerance=1000.0)

    def stop(self, t: float) -> PathStop:
        """The stop at a time of the motion, s, as the loop would begin it there; TrajectoryError beyond its ends."""
        start, t = self.motion.start, float(self._within(real_array(t, "t", ())))
        loop = self._loop
        begin, now = (_START + round(1e9 * (x - start)) for x in (start, t))
        loop.restart()
        loop.send_trajectory(self.motion, begin - round(1e9 * start))
        loop.plan(now, 0.0)
        loop.update(now, self._period)
        if loop.record.stopping:  # at rest at its end
            return PathStop(0.0, True, 0.0)
        loop.act("stop")
        begin = now
        while loop.record.stopping and loop.status is not Status.HELD:
            now += round(1e9 * self._period)
            loop.update(now, self._period)
        on_path = loop.record.on_path
        duration = loop.record.stop_end if on_path else (now - begin) / 1e9
        excess = loop.record.excess
        if not np.isfinite([duration, excess]).all():
            return PathStop(np.inf, False, np.inf)
        return PathStop(duration, on_path, excess)

    def fastest(self, t: ArrayLike, most: float = FASTEST_PACE) -> Array:
        """The largest constant pace (N,) up to ``most`` that meets all limits at times of the motion (N,), s.

        0 where none does: a position is out of its range, or gravity alone exceeds an effort. A pace may change between
        places as fast as its own limits allow, so that the curve is a bound, as the velocity limit curve of
        time-optimal path parametrisation.
        TrajectoryError beyond the ends of the motion.
        """
        times, least = self._within(real_array(t, "t")).reshape(-1), 1 / positive(most, "most")
        rows = [np.atleast_2d(x) for x in self.motion.derivatives(times)]
        paces = np.zeros(len(times))
        for i in range(len(times)):
            verdict = check(self.arm, Samples(times[i : i + 1], *(x[i : i + 1] for x in rows)))
            scaling = verdict.margin if verdict.ok else verdict.time_scaling
            paces[i] = 1 / max(scaling, least) if scaling else 0.0
        return paces

    def _within(self, t: Array) -> Array:
        start, end = self.motion.start, self.motion.end
        for beyond in t[~((t >= start) & (t <= end))]:
            raise TrajectoryError(f"t must be within the motion, {start:g} to {end:g} s, is {beyond:g}")
        return t
