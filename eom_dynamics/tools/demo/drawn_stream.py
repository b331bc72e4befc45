# SPDX-License-Identifier: Apache-2.0
"""A stream of positions as of a hand, 10 Hz with jitter and gaps, on a simulated arm.

Quintic segments with rigid feedforward, as of joint_trajectory_controller, beside
:class:`.OnlineTrajectory` and flatness.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.interpolate import BPoly

from ...arrays import Array
from ...control.online_trajectory import OnlineTrajectory
from ...elastic import ElasticArm
from ...exceptions import StateError
from ...simulation import SimulatedRobot
from ..pages.charts import color, frame

PERIOD, SECONDS = 1e-3, 3.0

_WAYS = ("quintic segments, rigid feedforward", "OnlineTrajectory, flatness")


class DrawnStream(NamedTuple):
    """Targets of a stream, and what two ways make of them.

    Attributes:
        times, positions: of targets (K,) and (K, n), s, rad or m.
        references, links: (2, N, n) by :data:`_WAYS`.
    """

    times: Array
    positions: Array
    references: Array
    links: Array

    @property
    def errors(self) -> dict[str, float]:
        """Root mean square of the links to their own reference, rad or m."""
        return dict(
            zip(_WAYS, np.sqrt(np.mean((self.links - self.references) ** 2, axis=(1, 2))).tolist(), strict=True)
        )


def drawn_stream(arm: ElasticArm) -> DrawnStream:
    """Follow a stream; StateError for antagonistic pairs, whose motors have no rigid counterpart."""
    if arm.paired.any():
        raise StateError("antagonistic pairs have no feedforward for rigid joints to compare with")
    n, draw = arm.robot.n, np.random.default_rng(1)
    robot = replace(arm.robot, command_period=0.0, drive_delay=0.0)
    limits = [joint.limits for joint in robot.independent_joints]
    given = {
        name: np.minimum([getattr(x, name) for x in limits], most)
        for name, most in (("velocity", 2.0), ("acceleration", 10.0))
    }
    online = OnlineTrajectory(arm, PERIOD, given)
    start = online.state[0]
    times = 0.1 * np.arange(round(10 * SECONDS) - 5)
    waves = 2 * np.pi * np.outer(times, (0.4, 0.9))
    drawn = (1 - np.cos(waves)) @ np.array([[0.2], [0.05]]) * draw.choice([-1, 1], n)
    positions = np.clip(start + drawn, online.limits.lower, online.limits.upper)
    kept = np.setdiff1d(np.arange(len(times)), [9, 10, 11])
    times, positions = times[kept] + 0.03 * draw.uniform(size=len(kept)), positions[kept]
    events = dict(zip(np.round(times / PERIOD).astype(int).tolist(), positions, strict=True))
    states = np.empty((round(SECONDS / PERIOD), 5, n))
    for k in range(len(states)):
        if k in events:
            online.target(events[k])
        states[k] = online.step()
    rigid = ElasticArm(robot, stiffness=np.inf)
    ways = ((rigid, _segments(events, start, len(states))), (arm, states))
    links = [_followed(ElasticArm(robot), feedforward, motion, start) for feedforward, motion in ways]
    return DrawnStream(times, positions, np.stack([motion[:, 0] for _, motion in ways]), np.stack(links))


def _segments(events: dict[int, Array], start: Array, cycles: int) -> Array:
    """States (N, 5, n) of quintic segments, each to a target by the next one, with the velocity of the last two."""
    states = np.zeros((cycles, 5, len(start)))
    now, last = np.stack([start, 0 * start, 0 * start]), start
    begins = sorted(events)
    for begin, end in zip(begins, [*begins[1:], cycles], strict=True):
        T = PERIOD * min(end - begin, 100)
        velocity = (events[begin] - last) / T if end < cycles else 0 * start
        path = BPoly.from_derivatives([0, T], [now, np.stack([events[begin], velocity, 0 * start])])
        t = PERIOD * np.arange(1, end - begin + 1)
        for order in range(3):
            states[begin:end, order] = path(np.minimum(t, T), order)
        late = t > T
        states[begin:end, 1:][late] = 0.0
        now, last = states[end - 1, :3].copy(), events[begin]
    return states


def _followed(arm: ElasticArm, feedforward: ElasticArm, states: Array, start: Array) -> Array:
    """Positions (N, n) of links whose drives hold each command for a period."""
    plant = SimulatedRobot(arm, period=PERIOD, position=start, limited=False)
    command = feedforward.feedforward(*np.moveaxis(states, 1, 0), lead=PERIOD / 2)
    links = np.empty((len(states), arm.robot.n))
    for k in range(len(states)):
        links[k] = plant.readings().q
        plant.follow(command.motor_position[k], command.motor_velocity[k], command.motor_effort[k])
        plant.advance()
    return links


def stream_picture(stream: DrawnStream, unit: str) -> bytes:
    """Return targets, references and errors of the joint that moves most as PNG."""
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    frame(left, f"positions received (dots), and references  [{unit}]")
    frame(right, f"link from its reference  [{unit}]")
    t, joint = PERIOD * np.arange(stream.links.shape[1]), int(np.argmax(np.ptp(stream.positions, axis=0)))
    left.plot(stream.times, stream.positions[:, joint], "o", color="#8A8A8A")
    for k, name in enumerate(stream.errors):
        left.plot(t, stream.references[k, :, joint], color=color(1 - k), label=name)
        right.semilogy(t, np.abs(stream.links[k] - stream.references[k]).max(axis=1) + 1e-9, color=color(1 - k))
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    file = io.BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
