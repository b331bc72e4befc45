# SPDX-License-Identifier: Apache-2.0
"""Random motions near their limits, played by a loop while their pace changes."""

from collections.abc import Iterable

import numpy as np

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.trajectory import Spline, check, minimum_time, through

# A tenth of the period of a cycle, ns, so that limits are also checked between cycles.
STEP, START = 100_000, 10**18


def fast(arm: ElasticArm, rng: np.random.Generator, *, fastest: bool = False) -> Spline:
    """A random motion through four waypoints, 3 % slower than its limits allow, or the fastest one along its path."""
    middle = np.array([0, 0, 0, -1.5, 0, 1.5, 0]) if arm.robot.n == 7 else np.zeros(arm.robot.n)
    positions = middle + np.cumsum(rng.uniform(-0.4, 0.4, (4, arm.robot.n)), axis=0)
    times = np.append(0.0, np.cumsum(rng.uniform(0.7, 1.3, 3)))
    if fastest:
        return minimum_time(arm, positions)
    found = check(arm, through(times, positions), rate=1000.0)
    return through(1.03 * float(found.margin or found.time_scaling or 1.0) * times, positions)


def played(
    arm: ElasticArm,
    motion: Spline,
    events: Iterable[tuple[float, float | str]],
    seconds: float,
    shortest: float = 0.01,
    step: int = STEP,
    late: float = 0.0,
    period: float | None = None,
) -> tuple[list[Array], ControlLoop]:
    """States (N, 5, n), path parameters and paces of cycles, with actions or speeds at times, s.

    Args:
        shortest: duration of the shortest stop, s.
        step: of the cycles, ns.
        late: delay of each second cycle, relative to it.
        period: that the loop is given, s; by default the step.
    """
    loop = ControlLoop(RobotTable(arm))
    loop.configure(safety="permissive", stop_duration=shortest)
    loop.send_trajectory(motion, START)
    rows, steps = [], {round(1e9 * t / step): event for t, event in events}
    for k in range(round(1e9 * seconds / step)):
        now = START + k * step + round(k % 2 * late * step)
        loop.plan(now, 1e-3)
        if (event := steps.get(k)) is not None:
            loop.act(event) if isinstance(event, str) else loop.speed(event)
        loop.update(now, 1e-9 * step if period is None else period)
        rows.append((loop.state.copy(), loop.number("path_time"), loop.number("pace")))
    return [np.array(x) for x in zip(*rows, strict=True)], loop
