# SPDX-License-Identifier: Apache-2.0
"""Setpoints streamed at a fixed rate through the feedforward of a model to a simulated robot.

In step k, from t_k to t_k + h, the drives hold the command for t_k + h/2, so that references are right on average; the
readings are at t_k + h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.elastic import ElasticArm
from eom_dynamics.simulation import SimulatedRobot
from eom_dynamics.simulation.simulated_robot import Readings
from eom_dynamics.trajectory import Trajectory


class StreamTimes(NamedTuple):
    """Sample times of a stream, on the clock of the motion.

    Attributes:
        setpoints: (N,) times of the setpoints, s; before the motion, setpoints are at its start, so that the robot
            settles there.
        readings: (N,) times of the readings after each of them, s, negative before the motion.
    """

    setpoints: Array
    readings: Array


def stream_times(start: float, end: float, rate: float, settle: float = 0.0) -> StreamTimes:
    """Stream times from ``start`` to ``end``, s, at ``rate``, Hz, after a rest of ``settle``, s."""
    before, count = round(settle * rate), round((end - start) * rate)
    readings = start + (np.arange(-before, count) + 1) / rate
    return StreamTimes(np.maximum(readings - 0.5 / rate, start), readings)


def stream(
    robot: SimulatedRobot,
    known: ElasticArm,
    motion: Trajectory,
    times: StreamTimes,
    *,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Readings:
    """Make a simulated robot follow the feedforward of a model.

    Args:
        robot: the robot, at rest at the start of the motion, with the period of the stream.
        known: the model.
        motion: of the links, at rest at its start.
        times: of the stream.
        progress: called with the fraction done.

    Returns:
        Readings (N, n) and (N, m) at ``times.readings``.

    Raises:
        SimulationError: the motion leaves all bounds.
        StiffnessError: the model cannot realize the motion.
    """
    states = motion.derivatives(times.setpoints, 4)
    command = known.feedforward(*states)
    # The simulated robot takes SI units, as a node does from the numbers of its drives.
    sent = known.drive_state(*known.drive_command(command, *states[:3])[:3])
    rows = []
    for k in range(len(times.setpoints)):
        robot.follow(sent.motor_position[k], sent.motor_velocity[k], sent.motor_effort[k])
        robot.advance()
        rows.append(robot.readings())
        if k % 100 == 0:
            progress(k / len(times.setpoints))
    return Readings(*(np.array(values) for values in zip(*rows, strict=True)))
