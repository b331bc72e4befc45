# SPDX-License-Identifier: Apache-2.0
"""Recordings of both sides of the springs (motors and links), at common uniform times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from ..arrays import Array
from ..robot import Robot
from .exceptions import IdentificationError
from .recording import LEAST_SAMPLES, Recording

# Of a step: samples closer than that to even times are at them.
_JITTER = 0.01


@dataclass(frozen=True, eq=False)
class ArmRecording:
    """Recording of both sides of the springs of n joints, in the robot's order, at uniform times.

    Attributes:
        t: (N,) s.
        q, qd: (N, n) positions and velocities of the links, rad or m, and per s; velocities None if not recorded.
        tau: (N, n) efforts of the springs, N m or N; NaN where they were not recorded.
        theta: (N, n) positions of the motors on the link side of the gears, rad or m.
        motor_effort: (N, n) on the link side of the gears, N m or N; NaN where they were not recorded.
        current: (N, n) of the motors, A; None if not recorded.
        starts: samples at which the second and further motions of joined recordings begin.
    """

    t: Array
    q: Array
    qd: Array | None
    tau: Array
    theta: Array
    motor_effort: Array
    current: Array | None = None
    starts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check shapes; raises IdentificationError."""
        shape = (len(self.t), np.shape(self.q)[-1])
        for name in ("q", "qd", "tau", "theta", "motor_effort", "current"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != shape:
                raise IdentificationError(f"{name} has the shape {np.shape(values)}, must have {shape}, as t and q")

    def centered(self, delay: float) -> ArmRecording:
        """The recording with motor efforts and currents advanced by a delay, s; the ends are held."""

        def earlier(values: Array) -> Array:
            return np.stack([np.interp(self.t + delay, self.t, x) for x in values.T], axis=1)

        current = None if self.current is None else earlier(self.current)
        return replace(self, motor_effort=earlier(self.motor_effort), current=current)

    def links(self, robot: Robot, name: str) -> Recording:
        """The recording of the link side."""
        return Recording(robot.joint_names, self.t, self.q, self.tau, self.qd, name)


def joined(parts: Sequence[ArmRecording]) -> ArmRecording:
    """Motions with the same sample period, joined to one recording with ``starts``."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.t) for part in parts]
    period = (parts[0].t[-1] - parts[0].t[0]) / (lengths[0] - 1)

    def stacked(name: str) -> Array | None:
        values = [getattr(part, name) for part in parts]
        return None if any(x is None for x in values) else np.concatenate(values)

    columns = {name: stacked(name) for name in ("q", "qd", "tau", "theta", "motor_effort", "current")}
    starts, at = [], 0
    for part, length in zip(parts, lengths, strict=True):
        starts += [at, *(at + start for start in part.starts)]
        at += length
    return ArmRecording(period * np.arange(at), **columns, starts=tuple(starts[1:]))  # type: ignore[arg-type]


def both_sides(
    links: Recording, motors: Recording, currents: Recording | None = None, *, period: float | None = None
) -> list[ArmRecording]:
    """Resample recordings of both sides of the springs at common uniform times, where both have samples.

    Args:
        links: positions and efforts of the links.
        motors: positions and efforts of the motors on the link side of the gears, on the same clock.
        currents: of the motors, A, as efforts.
        period: step of the times, s; by default that of the links.

    Returns:
        A recording for each motion that all have.

    Raises:
        IdentificationError: the recordings have no time in common, or a clock was set during one of them.
    """
    sides = [_recorded(side.cleaned()) for side in (links, motors, *(() if currents is None else (currents,)))]
    for side in sides:
        if np.any(np.diff(side.t) <= 0):
            raise IdentificationError(
                f"{side.name}: the clock was set during the recording; split it there, so that both sides of the "
                "springs can be aligned"
            )
    step = period or sides[0].period
    groups: list[tuple[Recording, ...]] = [()]
    for side in sides:
        extended = [(*group, own) for group in groups for own in side.motions()]
        groups = [each for each in extended if _overlap(each) >= LEAST_SAMPLES * step]
    if not groups:
        ranges = ", ".join(f"{side.t[0]:.6g} to {side.t[-1]:.6g} s" for side in sides if len(side))
        raise IdentificationError(f"{links.name}: links and motors were not recorded at the same time: {ranges}")
    return [_at_common_times(group, step) for group in groups]


def _recorded(side: Recording) -> Recording:
    """The part of a recording without missing efforts at its ends."""
    known = ~np.isnan(side.tau)
    complete = np.flatnonzero(known[:, known.any(axis=0)].all(axis=1))
    return side[complete[0] : complete[-1] + 1] if len(complete) else side


def _overlap(motions: Sequence[Recording]) -> float:
    """Time that all motions have in common, s; negative if they have none."""
    return float(min(each.t[-1] for each in motions) - max(each.t[0] for each in motions))


def _at_common_times(sides: Sequence[Recording], period: float) -> ArmRecording:
    links, motors = sides[0], sides[1]
    start, end = max(side.t[0] for side in sides), min(side.t[-1] for side in sides)
    # Samples of the links stay as they are where their times are even.
    start = float(links.t[np.searchsorted(links.t, start - _JITTER * period)])
    t = np.asarray(start + period * np.arange(int((end - start) / period + _JITTER) + 1), dtype=float)
    q, tau = (_at(t, links.t, x) for x in (links.q, links.tau))
    qd = None if links.qd is None else _at(t, links.t, links.qd)
    theta, effort = (_at(t, motors.t, x) for x in (motors.q, motors.tau))
    current = _at(t, sides[2].t, sides[2].tau) if len(sides) > 2 else None
    return ArmRecording(t, q, qd, tau, theta, effort, current)


def _at(times: Array, t: Array, values: Array) -> Array:
    """Values (N, n) at other times, NaN in columns that were not recorded."""
    first = int(np.searchsorted(t, times[0] - _JITTER * (times[1] - times[0])))
    own = t[first : first + len(times)]
    if len(own) == len(times) and np.max(np.abs(own - times)) <= _JITTER * (times[1] - times[0]):
        return np.asarray(values[first : first + len(times)])
    result = np.full((len(times), values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        known = np.isfinite(column)
        if np.count_nonzero(known) > 1:
            result[:, k] = PchipInterpolator(t[known], column[known])(np.clip(times, t[known][0], t[known][-1]))
    return result
