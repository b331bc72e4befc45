# SPDX-License-Identifier: Apache-2.0
"""Feedforward of trajectories: efforts at waypoints, commands at a sample rate, and a check of limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import first_not_finite, real_array, violation
from ..arrays import STATE_NAMES, Array
from ..elastic import ElasticArm, Feedforward
from ..elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from ..elastic.elastic_arm import require_arm
from ..exceptions import StateError, TrajectoryError
from .limits import Verdict, check, verdict_of
from .quantities import Load, SampledLoad
from .trajectory import Samples, Spline, Trajectory, check_times, dense_states, sample_times

CHECK_RATE = 1000.0  # minimum rate of limit checks, Hz


class TrajectoryFeedforward(NamedTuple):
    """Feedforward of a trajectory.

    Attributes:
        efforts: tau (K, n) at the given times, N m or N.
        samples: times (N,) and states (N, n) at the sample rate.
        command: at the samples, each (N, n) or (N, m); all numbers are finite.
        verdict: check of the limits of joints and motors.
    """

    efforts: Array
    samples: Samples
    command: Feedforward
    verdict: Verdict


def trajectory_feedforward(
    arm: ElasticArm, trajectory: Trajectory, t: ArrayLike, *, rate: float = 0.0, most: int = 10_000_000
) -> TrajectoryFeedforward:
    """Feedforward of a trajectory, with a check of limits.

    The deflection of springs with dampers and presliding friction start at their steady states. Both
    are integrated from sample to sample, as in a stream of setpoints, or at CHECK_RATE if that is higher.

    Args:
        arm: the arm.
        trajectory: of all its joints, with a start and an end.
        t: (K,), s, for the efforts, for example the times of the waypoints.
        rate: sample rate, Hz; the last sample is at the end. With 0 the samples are at ``t``, which must increase.
        most: maximum number of samples, also for the check of limits.

    Raises:
        TrajectoryError: the number of joints is wrong, there are too many samples, or the trajectory is so fast that
            numbers overflow.
    """
    require_arm(arm)
    if trajectory.n != arm.robot.n:
        raise TrajectoryError(f"the trajectory has {trajectory.n} joints, the robot {arm.robot.n}")
    duration = trajectory.end - trajectory.start
    if violation(rate, "not negative"):
        raise TrajectoryError(f"rate must be a number of Hz, or 0 for samples at the given times; is {rate}")
    if duration * rate > most - 1:  # and the end
        raise TrajectoryError(f"{duration:g} s at {rate:g} Hz are more than {most} samples; lower the rate")
    points = np.atleast_1d(real_array(t, "t", error=TrajectoryError))
    if not rate and len(points) > most:
        raise TrajectoryError(f"{len(points)} times are more than {most}; reduce them")
    t = sample_times(trajectory, rate) if rate else points
    with np.errstate(all="ignore"):
        efforts = _feedforward(arm, _states(arm, trajectory, points), points).tau
        fine = max(rate, min(CHECK_RATE, most / duration) if duration else CHECK_RATE)
        through = np.union1d(t, sample_times(trajectory, fine)) if arm.has_memory and rate < fine else t
        samples, command = _sampled(arm, trajectory, through)
        if through is not t:
            wanted = np.searchsorted(through, t)
            samples = Samples(*(x[wanted] for x in samples))
            command = Feedforward(*(x[wanted] for x in command))
        _require_finite_command(arm, samples[1:], command, t)
        complete = rate == fine and len(check_times(trajectory, fine)) == len(t)
        verdict = check(arm, trajectory, rate=fine, samples=samples if complete else None)
        _ = verdict.time_scaling  # computed at first access
    return TrajectoryFeedforward(efforts, samples, command, verdict)


def checked(arm: ElasticArm, trajectory: Trajectory, rate: float, most: int) -> Verdict:
    """Check that no number overflows on a trajectory, and check the limits of joints and motors.

    The rate is ``rate``, Hz, or lower for at most ``most`` samples. Raises TrajectoryError if a number overflows, with
    the quantity, joint and time.
    """
    duration = trajectory.end - trajectory.start
    finest = min(rate, most / duration) if duration else rate

    def finite(t: Array, load: Load) -> Feedforward:
        command = _feedforward(arm, load.states, t)
        _require_finite_command(arm, load.states, command, t)
        return command

    with np.errstate(all="ignore"):
        if isinstance(trajectory, Spline) and (dense := dense_states(trajectory, finest)):
            t, rows = dense
            _require_finite(arm, STATE_NAMES, rows, t)
            load = SampledLoad(arm, t, lambda selection: [x[selection] for x in rows])
        else:
            t = check_times(trajectory, finest)
            load = SampledLoad(arm, t, lambda selection: _states(arm, trajectory, t[selection]))
        return verdict_of(arm, trajectory, load, finest, compute=finite)


def _states(arm: ElasticArm, trajectory: Trajectory, t: Array) -> tuple[Array, ...]:
    states = trajectory.derivatives(t, len(STATE_NAMES) - 1)
    _require_finite(arm, STATE_NAMES, states, t)
    return states


def _sampled(arm: ElasticArm, trajectory: Trajectory, t: Array) -> tuple[Samples, Feedforward]:
    states = _states(arm, trajectory, t)
    command = _feedforward(arm, states, t)
    if arm.has_memory:
        deflection = arm.deflections_over_time(t, command[:3])
        command = _feedforward(arm, states, t, deflection)
        friction = arm.friction_states(command.motor_position, command.motor_velocity)
        command = _feedforward(arm, states, t, deflection, friction)
    return Samples(t, *states), command


def _feedforward(
    arm: ElasticArm, states: tuple[Array, ...], t: Array, deflection: Array | None = None, friction: Array | None = None
) -> Feedforward:
    """The command for states at times; errors of efforts that overflow have the time."""
    try:
        return arm.feedforward(*states, deflection=deflection, friction_state=friction)
    except StateError:
        with np.errstate(all="ignore"):
            _require_finite(arm, Feedforward._fields, arm.efforts(*states), t)
        raise


def _require_finite_command(arm: ElasticArm, states: Sequence[Array], command: Feedforward, t: Array) -> None:
    """Refuse a command that is not finite, also in the units of the drives."""
    _require_finite(arm, Feedforward._fields, command, t)
    if arm.converts:
        _require_finite(arm, (*DRIVE_NAMES, *SENT_NAMES), arm.drive_command(command, *states[:3]), t)


def _require_finite(arm: ElasticArm, fields: Sequence[str], values: Sequence[Array], t: Array) -> None:
    for field, value in zip(fields, values, strict=False):
        of = arm.motor_names if "motor" in field or "drive" in field else arm.robot.joint_names
        if bad := first_not_finite(value):
            at, place = bad
            raise TrajectoryError(f"the motion is too fast: {field} of {of[place]} overflows at {t[at]:g} s")
