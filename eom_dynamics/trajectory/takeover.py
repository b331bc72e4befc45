# SPDX-License-Identifier: Apache-2.0
"""Replacement and stop of a trajectory during execution: C⁴, and within the limits of an arm."""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..elastic import ElasticArm
from ..exceptions import StateError, TrajectoryError
from ..states import STATE_NAMES
from .limits import Verdict, check
from .rest_to_rest import StopPolynomial
from .spline import ORDERS, Spline
from .trajectory import Trajectory

START_TOLERANCE = 0.01
"""Default of the largest distance of the start of a trajectory from the commanded position, rad or m; as in MoveIt."""

START_LATENCY = 0.1
"""Default of the time by which that start may be late, s."""

SMALL_STEP = 1e-4
"""What joints may have moved until a motion is played that is late, for it to be as if on time, rad or m: as far as a
joint at 0.1 rad/s moves between two commands at 1 kHz. From rest, it takes a motion of a second some 0.05 s."""

LARGEST_CORRECTION = 10**8
"""Largest backward step of the clock during which a motion only pauses, ns; a larger one is a restarted simulation."""

JUMP_PERIODS, SHORTEST_JUMP = 10, 10**8
"""Smallest jump forward of the clock: this many periods of the commands, and this time, ns."""


class Shifted:
    """A trajectory with a time offset."""

    def __init__(self, trajectory: Trajectory, by: float) -> None:
        """Delay a trajectory by a time in s."""
        self._trajectory, self._by = trajectory, by
        self.n, self.start, self.end = trajectory.n, trajectory.start + by, trajectory.end + by

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives, see :class:`.Trajectory`."""
        return self._trajectory.derivatives(np.asarray(t, dtype=float) - self._by, order)


class Handover:
    """A trajectory that switches to another one at some time.

    From that time, a polynomial of degree nine leads from the state of the old trajectory to that of the new one at its
    next knot, or at a later time, so that the whole is C⁴.

    Attributes:
        transition: that polynomial, in the time of the old trajectory.
        is_near: whether both are within the tolerance when the new one starts, or at a later replacement.
    """

    def __init__(
        self,
        old: Trajectory,
        new: Spline,
        begin: float,
        at: float,
        names: Sequence[str] = (),
        period: float = 0.0,
        duration: float = 0.0,
        tolerance: float = START_TOLERANCE,
        latency: float = 0.0,
    ) -> None:
        """Hand over from ``old`` to ``new``.

        Args:
            old: the present trajectory, which may have ended.
            new: the next trajectory.
            begin: time 0 of ``new`` in the time of ``old``, s.
            at: time of the replacement in the time of ``old``, s; not before ``begin``.
            names: names of the joints, for error messages.
            period: time between commands, s; if ``new`` starts within it, it must start close to ``old``.
            duration: smallest duration of the transition, s; with 0 it ends at the next knot.
            tolerance: largest distance of that start, rad or m, of joints at rest.
            latency: time by which that start may be behind ``old``, s: the velocity of ``old`` times this is allowed.

        Raises:
            TrajectoryError: ``new`` has ended at that time, or is too far from ``old``.
        """
        self.n, self.start = old.n, old.start
        own = at - begin
        after = new.t[new.t > own]
        state = old.derivatives(at)
        start = max(own, new.start)
        position, velocity = old.derivatives(begin + start, 1)
        away = np.abs(new.derivatives(start, 0)[0] - position)
        most = tolerance + latency * np.abs(velocity)
        self.is_near = bool(np.all(away <= most))
        if own + period >= new.start and not self.is_near:
            joint = int(np.argmax(away - most))
            raise TrajectoryError(
                f"{names[joint] if names else f'joint {joint}'} starts {away[joint]:.3g} rad or m from its "
                f"commanded position at that time, must be at most {most[joint]:.3g}: start there"
            )
        if own > new.end:
            raise TrajectoryError("the trajectory ends before it starts; check its time stamp")
        # Without a next knot at the very end, as of a single position that starts now.
        meets = max(float(after[0]) if len(after) else own + period, own + duration)
        joined = meets + begin
        self.end = max(new.end, meets) + begin
        ends = np.stack([state, new.derivatives(meets, len(STATE_NAMES) - 1)], axis=1)
        self.transition = Spline([at, joined], ends)
        # With their start times. Not nested, since trajectories may be replaced many times a second.
        before = old._pieces if isinstance(old, Handover) else [(-math.inf, old)]
        self._pieces: list[tuple[float, Trajectory]] = [piece for piece in before if piece[0] < at]
        self._pieces += [(at, self.transition), (joined, Shifted(new, begin))]

    def from_then_on(self, t: float) -> Trajectory:
        """The trajectory from ``t`` on, without pieces that have ended."""
        first = self._place(t)
        if not first:
            return self
        if first == len(self._pieces) - 1:
            return self._pieces[-1][1]
        rest = copy.copy(self)
        rest._pieces = self._pieces[first:]
        return rest

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives, see :class:`.Trajectory`."""
        at = np.asarray(t, dtype=float)
        if at.ndim == 0:
            return self._pieces[self._place(float(at))][1].derivatives(at, order)
        rows = [self.derivatives(each, order) for each in at]
        return tuple(np.array(column).reshape(len(at), self.n) for column in zip(*rows, strict=True))

    def _place(self, t: float) -> int:
        """Index of the piece at a time."""
        return max(bisect_right(self._pieces, t, key=itemgetter(0)) - 1, 0)


DURATIONS = 0.05 * 1.5 ** np.arange(14)
"""Durations of short motions to try, s: each half as long again as the one before."""

SAMPLES = 100
"""Samples of each motion at which limits are checked."""

T = TypeVar("T")


def first_within_limits(arm: ElasticArm, plans: Iterable[T], motion_of: Callable[[T], Spline]) -> tuple[T, Verdict]:
    """Return the first plan that meets the limits of joints and motors, or else the one that exceeds them least.

    Args:
        arm: the arm.
        plans: in order of preference.
        motion_of: returns the motion of a plan that is to be checked; it has a duration.

    Returns:
        The plan and the check of its motion.

    Raises:
        StateError: the motors can realise none of the motions, for example because a spring would be slack.
    """
    best: tuple[T, Verdict] | None = None
    least, reason = np.inf, StateError("there is no motion to choose from")
    with np.errstate(all="ignore"):
        for plan in plans:
            motion = motion_of(plan)
            try:
                verdict = check(arm, motion, rate=SAMPLES / (motion.end - motion.start))
            except StateError as error:
                reason = error
                continue
            worst = max((peak.ratio for peak in verdict.exceeded), default=0.0)
            if best is None or worst < least:
                best, least = (plan, verdict), worst
            if verdict.ok:
                break
    if best is None:
        raise reason
    return best


def take_over(
    arm: ElasticArm,
    old: Trajectory,
    new: Spline,
    begin: float,
    at: float,
    period: float = 0.0,
    tolerance: float = START_TOLERANCE,
    latency: float = 0.0,
) -> tuple[Handover, Verdict]:
    """Replace a trajectory by another one, with a transition that meets the limits of joints and motors.

    The transition ends at the next knot. If that exceeds a limit, and the new trajectory starts within
    the tolerance, it takes the shortest of some longer durations that meets the limits, or else the one that
    exceeds them least: a new trajectory that arrives late makes no step.

    Args:
        arm: the arm.
        old, new, begin, at, period, tolerance, latency: as for :class:`.Handover`.

    Returns:
        The trajectories in sequence, and the check of the transition.

    Raises:
        TrajectoryError: as :class:`.Handover`.
        StateError: the motors cannot realise the transition.
    """
    names = arm.robot.joint_names

    def handovers() -> Iterator[Handover]:
        shortest = Handover(old, new, begin, at, names, period, tolerance=tolerance, latency=latency)
        yield shortest
        if shortest.is_near:
            for duration in DURATIONS[shortest.transition.end - at < DURATIONS]:
                yield Handover(old, new, begin, at, names, period, duration, tolerance, latency)

    return first_within_limits(arm, handovers(), attrgetter("transition"))


def stop(arm: ElasticArm, trajectory: Trajectory, t: float) -> Spline:
    """Stop a trajectory: motion from a state to rest, continuous up to the snap, as :class:`.StopPolynomial`.

    Of some durations, the shortest that meets the limits of joints and motors, or else the one that exceeds them least.

    Args:
        arm: the arm.
        trajectory: of all its joints.
        t: time of that state, s.

    Returns:
        The motion; its time 0 is that of the state.

    Raises:
        StateError: the motors can realise none of these motions.
    """
    start = np.stack(trajectory.derivatives(t, ORDERS - 1))

    def within(duration: float) -> Spline:
        end = np.zeros_like(start)
        end[0] = StopPolynomial(start, duration).end
        return Spline([0.0, duration], np.stack([start, end], axis=1))

    return within(first_within_limits(arm, DURATIONS, within)[0])
