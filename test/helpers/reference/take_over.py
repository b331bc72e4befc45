# SPDX-License-Identifier: Apache-2.0
"""How trajectories take over from what is commanded."""

from typing import NamedTuple

import numpy as np

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import DEFAULTS, LONGEST_GAP, SMALL_STEP, TRANSITION_SAMPLES, TRANSITIONS
from eom_dynamics.elastic.limits import TOLERANCE
from eom_dynamics.kinematics.motion import predicted
from eom_dynamics.trajectory import Spline
from reference.stop import Beside, Carried, Flow, excess


class Plan(NamedTuple):
    """A trajectory that takes over at ``begin``, with a transition in its time, which counts from ``origin``; ns.

    One that is not planned is planned when it begins.
    """

    spline: Spline
    origin: int = 0
    begin: int = 0
    transition: Spline | None = None
    planned: bool = True

    @property
    def start(self) -> float:
        return self.transition.start if self.transition else max(1e-9 * (self.begin - self.origin), self.spline.start)

    @property
    def end(self) -> float:
        return max(self.spline.end, self.transition.end) if self.transition else self.spline.end

    def at(self, now: int) -> Array:
        """State (5, n) at a time of the clock, ns."""
        return self.state(1e-9 * (now - self.origin))

    def state(self, t: float) -> Array:
        """State (5, n) at a time of the trajectory, s."""
        motion = self.transition if self.transition and t < self.transition.end else self.spline
        return np.stack(motion.derivatives(t))


def commanded_later(state: Array, age: int, interval: int) -> Array:
    """What is commanded some time after a setpoint, ns: it moves on for an interval; it is held after a gap."""
    if abs(age) > LONGEST_GAP:
        return np.stack([x * (k == 0) for k, x in enumerate(state)])
    step = 1e-9 * max(min(age, interval), 0)
    return np.stack([predicted(state[k:], step) for k in range(len(state))])


def take_over(
    arm: ElasticArm,
    spline: Spline,
    at: float,
    present: Array,
    later: Array,
    period: float,
    payload: Carried,
    beside: Beside,
    limits: str = "ignore",
) -> Plan | None:
    """Lead from a state at a time of a spline to its next knot, or within limits if it starts near; None if far.

    ``later`` is what would be commanded when the spline starts, ``beside`` what is, beside the motion of joints.
    """
    start = max(at, spline.start)
    away = np.abs(spline.derivatives(start, 0)[0] - later[0])
    near = bool(np.all(away <= DEFAULTS["start_tolerance"] + 0.1 * np.abs(later[1])))
    if not near and at + period >= spline.start:
        return None
    knots = spline.t[spline.t > at]
    shortest = float(knots[0]) if len(knots) else at + period
    ends = [at + duration for duration in TRANSITIONS if near and duration > shortest - at]
    best, least = None, np.inf
    for end in (shortest, *ends):
        motion = Spline([at, end], np.stack([present, spline.derivatives(end)], axis=1))

        def flow(share: float, motion: Spline = motion) -> Flow:
            return Flow(np.stack(motion.derivatives(motion.start + share * (motion.end - motion.start))), *beside)

        if (beyond := excess(arm, flow, end - at, TRANSITION_SAMPLES, payload)) < least:
            best, least = Plan(spline, transition=motion), beyond
        if least <= TOLERANCE:
            break
    return best if least <= TOLERANCE or limits == "ignore" else None


def plan_from(
    arm: ElasticArm,
    spline: Spline,
    at: float,
    t: float,
    present: Array,
    period: float,
    payload: Carried,
    beside: Beside,
    limits: str = "ignore",
) -> Plan | None:
    """Take over from a state that is commanded; from rest, as if on time if that is no step by now, at ``t``."""

    def planned(at: float) -> Plan | None:
        later = present.copy()
        later[1] *= spline.start <= at
        return take_over(arm, spline, at, present, later, period, payload, beside, limits)

    if at > 0 and not present[1:].any() and (plan := planned(0.0)):
        moved = [np.abs(plan.state(x)[0] - present[0]) for x in np.linspace(0.0, t, 200)]
        if np.max(moved) <= SMALL_STEP:
            return plan
    return planned(at)
