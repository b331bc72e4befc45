# SPDX-License-Identifier: Apache-2.0
"""Pace of a motion along its path, for planners: stops, and the maximum pace at each time."""

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
from .settings import Status

_TABLE_CYCLES, _TABLE_PERIOD = 60, 0.02
"""Short cycles, and the period, s, of their work, that complete the loop's table of stops."""

_START = 10**9
"""Time 0 of the motion on the clock of the loop, ns."""


class PathStop(NamedTuple):
    """Stop during a motion.

    Attributes:
        duration: time until the arm is at rest, s.
        on_path: True if the stop stays on the path; otherwise it is a polynomial of the joints.
        excess: excess over limits, relative to half their ranges; zero within limits, infinite if no stop is possible.
    """

    duration: float
    on_path: bool
    excess: float


class PathTime:
    """Time scaling of a motion q(s): it is played as q(s(t)) with a path parameter s(t) of variable pace ṡ.

    With primes for derivatives by s, the chain rule gives the commanded derivatives:

        q̇ = q′ ṡ,   q̈ = q″ ṡ² + q′ s̈,   q⃛ = q‴ ṡ³ + 3 q″ ṡ s̈ + q′ s⃛,
        q⁗ = q⁗′ ṡ⁴ + 6 q‴ ṡ² s̈ + q″ (3 s̈² + 4 ṡ s⃛) + q′ s⁗

    The control loop changes the pace by a smoothstep of degree 7: s … s⁗ are continuous. A stop starts where the
    arm rests earliest within limits of joints and motors; this class returns the same result.

    Args:
        motion: the motion at pace 1.
        arm: the arm that plays it.
        shortest: duration of the shortest stop, s: ``stop_duration`` of the loop. Stops on the path take 0.3 s or
            longer.
        period: cycle period of the loop, s, at least 1e-6.

    Raises:
        TrajectoryError: the motion is not a spline, or has other joints than the arm.
        KernelError: the loop cannot be compiled, see :class:`.ControlLoop`.
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
        # A motion may start in the middle of its path.
        self._loop.configure(limits="ignore", stop_duration=positive(shortest, "shortest"), start_tolerance=1000.0)

    def stop(self, t: float) -> PathStop:
        """Stop from time t of the motion, s, as the loop would start it; TrajectoryError beyond the ends."""
        start, t = self.motion.start, float(self._within(real_array(t, "t", ())))
        loop = self._loop
        begin, now = (_START + round(1e9 * (x - start)) for x in (start, t))
        loop.restart()
        loop.send_trajectory(self.motion, begin - round(1e9 * start))
        loop.plan(now, 0.0)
        loop.update(now, self._period)
        if loop.record.stopping:  # at rest at its end
            return PathStop(0.0, True, 0.0)
        for _ in range(_TABLE_CYCLES):  # 1 ns long
            now += 1
            loop.update(now, _TABLE_PERIOD)
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

    def fastest(self, t: ArrayLike, most: float = 1.5) -> Array:
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
