# SPDX-License-Identifier: Apache-2.0
"""Scene of setpoints: inputs of each cycle of a control loop, and its parameters."""

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
    """Target, NaN for a joint that keeps its target, or a chunk (K, n) at times, s, after an origin, ns."""

    positions: Array
    velocities: Array | None = None
    times: Array | None = None
    origin: int = 0


class Cycle(NamedTuple):
    """Inputs of one millisecond.

    Attributes:
        fields: fields of the setpoint, in the robot's order; None without a setpoint.
        stamp: stamp of the setpoint, ns; None for the time of the cycle.
        payload: new payload of the tool.
        spline: new trajectory; an empty one, without knots, stops.
        begin: time of its time 0, ns; None for the time of the cycle.
        jump: jump of the clock before the cycle, ns.
        target: new target.
        speed: new speed scaling of trajectories.
        pauses: True to pause, False to resume.
        sensed: measured q, qd and joint torques, each (n,).
        motors: measured positions and velocities of the motors (2, m).
        mode: new mode.
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
        checks: stream checks.
        reverse: whether messages have the joints in reverse order.
        lacks: hosts that have no such scene, with the reason.
        on_contact: the parameter of the node.
        in_front: True if its targets may also come from a chained controller.
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
