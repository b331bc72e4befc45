# SPDX-License-Identifier: Apache-2.0
"""What an arm must do to follow a trajectory: efforts at waypoints, feedforward at a rate, a verdict on limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm, Feedforward
from ..drivetrain.springs import DampedSpring
from ..exceptions import TrajectoryError
from ..states import STATE_NAMES
from .limits import Verdict, check
from .trajectory import Samples, Trajectory, sample_times

Array = NDArray[np.float64]

CHECK_RATE = 1000.0
"""How often limits are looked at, Hz, where nothing is sampled oftener."""

# Between two calls of `progress`: some milliseconds.
_CHUNK = 5000


class TrajectoryFeedforward(NamedTuple):
    """A trajectory with what joints and motors must do on it.

    Attributes:
        efforts: tau (K, n) at the times that were asked for, N m or N.
        samples: times (N,) and states (N, n) at the rate.
        command: of the samples, each (N, n) or (N, m); every number is finite.
        verdict: on the limits of joints and motors.
    """

    efforts: Array
    samples: Samples
    command: Feedforward
    verdict: Verdict


def trajectory_feedforward(
    arm: ElasticArm,
    trajectory: Trajectory,
    times: ArrayLike,
    *,
    rate: float = 0.0,
    most: int = 10_000_000,
    progress: Callable[[float], Any] = lambda share: None,
) -> TrajectoryFeedforward:
    """Efforts, feedforward and verdict of a trajectory.

    Springs with dampers, which have a memory, begin without transient and go on from sample to sample, as in a stream
    of the samples; where these are fewer than CHECK_RATE, from one in CHECK_RATE to the next.

    Args:
        arm: the arm.
        trajectory: of its joints, from a start to an end.
        times: (K,), where efforts are wanted, s: the waypoints, say.
        rate: of the samples, Hz; the last one is at the end. 0 samples at ``times``, which increase then.
        most: how many samples there may be; where limits would have to be looked at oftener than that, they are looked
            at that often.
        progress: called now and then with a share from 0 to 1; what it raises ends the computation.

    Raises:
        TrajectoryError: the trajectory has another number of joints, there would be too many samples, or the
            trajectory is so fast that numbers overflow.
    """
    if trajectory.n != arm.robot.n:
        raise TrajectoryError(f"the trajectory has {trajectory.n} joints, the robot {arm.robot.n}")
    duration = trajectory.end - trajectory.start
    if not (np.isfinite(rate) and rate >= 0):
        raise TrajectoryError(f"rate must be a number of Hz, or 0 for the times alone; is {rate}")
    if duration * rate > most - 1:  # and the end
        raise TrajectoryError(f"{duration:g} s at {rate:g} Hz are more than {most} samples: lower the rate")
    points = np.atleast_1d(np.asarray(times, dtype=float))
    if not rate and len(points) > most:
        raise TrajectoryError(f"there are {len(points)} times, may be {most}")
    t = sample_times(trajectory, rate) if rate else points
    progress(0.0)
    with np.errstate(all="ignore"):
        efforts = arm.dynamics.inverse_dynamics(*_states(trajectory, points))[0]
        fine = max(rate, min(CHECK_RATE, most / duration) if duration else CHECK_RATE)
        with_memory = any(isinstance(spring, DampedSpring) for spring in arm.springs)
        through = np.union1d(t, sample_times(trajectory, fine)) if with_memory and rate < fine else t
        samples, command = _sampled(arm, trajectory, through, with_memory, lambda share: progress(0.5 * share))
        if through is not t:
            wanted = np.searchsorted(through, t)
            samples = Samples(*(x[wanted] for x in samples))
            command = Feedforward(*(x[wanted] for x in command))
        _require_finite_command(arm, command, t)
        verdict = check(arm, trajectory, rate=fine, samples=samples if rate == fine else None)
        progress(0.7)
        _ = verdict.time_scaling  # which is computed when it is asked for
    progress(1.0)
    return TrajectoryFeedforward(efforts, samples, command, verdict)


def require_finite(arm: ElasticArm, trajectory: Trajectory, rate: float, most: int) -> None:
    """Refuse a trajectory on which numbers overflow.

    Args:
        arm: the arm.
        trajectory: of its joints, from a start to an end.
        rate: how often it is looked at, Hz; the last time is its end.
        most: at how many times at most; of a longer one it is looked at that often.

    Raises:
        TrajectoryError: the message says what overflows, where and when.
    """
    duration = trajectory.end - trajectory.start
    t = np.linspace(trajectory.start, trajectory.end, 1 + min(int(np.ceil(duration * rate)), most))
    with np.errstate(all="ignore"):
        _require_finite_command(arm, arm.feedforward(*_states(trajectory, t)), t)


def _states(trajectory: Trajectory, t: Array) -> tuple[Array, ...]:
    states = trajectory.derivatives(t, len(STATE_NAMES) - 1)
    for name, values in zip(STATE_NAMES, states, strict=True):
        if not np.isfinite(values).all():
            at, place = np.argwhere(~np.isfinite(values))[0]
            raise TrajectoryError(f"the motion is too fast: {name} of joint {place} overflows at {t[at]:g} s")
    return states


def _sampled(
    arm: ElasticArm, trajectory: Trajectory, t: Array, with_memory: bool, progress: Callable[[float], Any]
) -> tuple[Samples, Feedforward]:
    n, m = arm.robot.n, len(arm.motor_joint)
    # One piece of memory for each, since a page that is new costs as much as what is computed into it.
    states = np.empty((len(STATE_NAMES), len(t), n))
    efforts, motors = np.empty((3, len(t), n)), np.empty((4, len(t), m))
    deflection = None
    for first in range(0, len(t), _CHUNK):
        part = slice(first, first + _CHUNK)
        states[:, part] = _states(trajectory, t[part])
        if with_memory:
            deflection = _deflections(arm, t, states, first, deflection)
        command = arm.feedforward(*states[:, part], deflection=deflection)
        efforts[:, part], motors[:, part] = command[:3], command[3:]
        progress(min(first + _CHUNK, len(t)) / len(t))
    return Samples(t, *states), Feedforward(*efforts, *motors)


def _deflections(arm: ElasticArm, t: Array, states: Array, first: int, before: Array | None) -> Array:
    """Deflections of springs with dampers in the chunk from ``first`` on, after those of the chunk before."""
    begin = first if before is None else first - 1
    part = slice(begin, first + _CHUNK)
    efforts = arm.dynamics.inverse_dynamics(*states[:, part])
    found = arm.deflections_over_time(t[part], efforts, start=None if before is None else before[-1])
    return found[first - begin :]


def _require_finite_command(arm: ElasticArm, command: Feedforward, t: Array) -> None:
    names = [arm.robot.joint_names] * 3 + [arm.motor_names] * 4
    for field, value, of in zip(Feedforward._fields, command, names, strict=True):
        if not np.isfinite(value).all():
            at, place = np.argwhere(~np.isfinite(value))[0]
            raise TrajectoryError(f"the motion is too fast: {field} of {of[place]} overflows at {t[at]:g} s")
