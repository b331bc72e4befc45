# SPDX-License-Identifier: Apache-2.0
"""Scene of setpoints: what comes in each cycle of a control loop, and with which parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from reference.checks import Settings
from reference.impedance import Gains

from eom_dynamics import Robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Spline

START, PERIOD = 1_700_000_000_000_000_000, 1_000_000
TIMEOUT, STOP = 0.005, 0.15


class Carried(NamedTuple):
    """A body at the only tool: mass, center of mass, xx xy xz yy yz zz about it, and the blend time, s."""

    mass: float
    center_of_mass: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0,) * 6
    blend_time: float = 0.03


class Target(NamedTuple):
    """A target, NaN where that of a joint stays, or a chunk (K, n) at times, s, after an origin, ns."""

    positions: Array
    velocities: Array | None = None
    times: Array | None = None
    origin: int = 0


class Cycle(NamedTuple):
    """What comes in one millisecond.

    Attributes:
        fields: of the setpoint, in the robot's order; None where none comes.
        stamp: of the setpoint, ns; None for the time of the cycle.
        payload: that the tool carries from then on.
        spline: that is to be played; without knots, an empty one that stops.
        begin: of its time 0, ns; None for the time of the cycle.
        jump: of the clock before the cycle, ns.
        target: that is to be aimed at.
        speed: scaling of motions that are played, from then on.
        pauses: whether they pause, from then on.
        sensed: q, qd and joint torques that are measured, each (n,).
        motors: measured positions and velocities of the motors (2, m).
        mode: from then on.
    """

    fields: Mapping[str, Array] | None = None
    stamp: int | None = None
    payload: Carried | None = None
    spline: Spline | None = None
    begin: int | None = None
    jump: int = 0
    target: Target | None = None
    speed: float | None = None
    pauses: bool | None = None
    sensed: tuple[Array, Array, Array] | None = None
    motors: Array | None = None
    mode: str | None = None


STOPS = Spline.__new__(Spline)  # the spline of an empty trajectory, which stops


NO_CHECKS = Settings()


@cache
def varied(robot: Robot, **properties: Any) -> Robot:
    """The robot with other properties, the same one for all scenes."""
    return replace(robot, **properties)


@dataclass(frozen=True)
class Scene:
    """Cycles for a robot.

    Attributes:
        limits, loss: parameters of the node: limits, on_setpoint_loss.
        checks: plausibility checks of the stream.
        reverse: whether messages have the joints in reverse order.
        lacks: hosts that have no such scene, with the reason.
        on_contact: the parameter of the node.
        in_front: whether its targets may also be those that a controller in front writes.
        gains: of the mode impedance.
    """

    robot: Robot
    cycles: Sequence[Cycle]
    limits: str = "ignore"
    loss: str = "none"
    checks: Settings = NO_CHECKS
    reverse: bool = False
    lacks: Mapping[str, str] = field(default_factory=dict)
    on_contact: str = "ignore"
    in_front: bool = False
    gains: Gains | None = None

    @property
    def times(self) -> list[int]:
        """Times of the cycles, ns."""
        return [time_of(k) + int(jump) for k, jump in enumerate(np.cumsum([cycle.jump for cycle in self.cycles]))]


def time_of(k: int) -> int:
    return START + k * PERIOD
