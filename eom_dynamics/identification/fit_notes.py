# SPDX-License-Identifier: Apache-2.0
"""Notes of a fit: on recordings and their units, unexplained efforts, and parameters that are not identifiable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..robot import Robot
from .exceptions import IdentificationError
from .filtering import AT_LIMIT, MOSTLY_BEYOND, REST
from .recording import Recording
from .regressor import Regressor
from .residuals import Score

# Share of an effort's standard deviation that is left, beyond which something is wrong.
_UNEXPLAINED = 0.5

# Factor of a mass that no estimate from drawings is off by.
_PLAUSIBLE = 10.0

# Steps between samples that differ by this share from the usual one, and share of them, of a clock that is irregular.
_IRREGULAR, _MANY = 0.5, 0.05

# Factor between measured velocities and the rates of positions that no filter explains, and standard deviations.
_CLOCK, _SURE = 0.03, 5.0

# Parts of a recording whose clocks are compared, and samples of a mean of velocities.
_PARTS, _MEAN = 4, 5

# Base parameters that are named.
_NAMED = 6

# Hz; no drive reports at a lower or higher rate.
_LOWEST_RATE, _HIGHEST_RATE = 2.0, 1e6

# Share of the limits of velocity below which the whole motion of an arm is too slow to be one for identification.
_SLOW = 0.002

# Steps of a recording over which velocities are means: shorter ones are of noise.
_STEPS = 1000

# Ratio to the limit of effort beyond which a unit is the cause.
_FAR = 5.0

_MILLI = "if they are in mN m, --effort-scale 0.001 converts them"


def recording_notes(robot: Robot, recordings: Iterable[Recording]) -> list[str]:
    """Notes on recordings; raises IdentificationError for useless ones, or another robot's."""
    notes = [f"{recording.name}: {note}" for recording in recordings for note in _notes(robot, recording)]
    return list(dict.fromkeys(notes))


def _notes(robot: Robot, recording: Recording) -> list[str]:
    if recording.joint_names != robot.joint_names:
        raise IdentificationError(
            f"{recording.name}: has the joints {', '.join(recording.joint_names)}, the robot "
            f"{', '.join(robot.joint_names)}"
        )
    clean = recording.cleaned()
    notes = list(clean.notes)
    motions = list(clean.motions())
    if len(motions) > recording.pieces:
        notes.append(f"pauses or jumps of the clock separate {len(motions)} motions")
    notes += _clock(clean)
    still = np.ptp(clean.q, axis=0) <= REST
    silent = np.asarray(np.isnan(clean.tau).all(axis=0))
    if still.all():
        raise IdentificationError(f"{recording.name}: no joint moves")
    if silent.all():
        raise IdentificationError(
            f"{recording.name}: efforts are missing or the same throughout; record them in JointState.effort, "
            "or in columns effort.NAME of a table, or name their topic, --effort-topic"
        )
    notes += [
        f"{name} does not move; its friction and the inertias that only its motion excites are not identifiable"
        for name in compress(robot.joint_names, still)
    ]
    notes += [
        f"{name} has no effort, or the same throughout; its equations are not used"
        for name in compress(robot.joint_names, silent)
    ]
    return notes


def _clock(recording: Recording) -> list[str]:
    """Lines on times that are irregular, and on a clock that measured velocities contradict."""
    lines = []
    steps = np.concatenate([np.diff(motion.t) for motion in recording.motions()] or [np.zeros(0)])
    if len(steps) and np.mean(np.abs(steps / np.median(steps) - 1) > _IRREGULAR) > _MANY:
        low, high = np.quantile(steps, (0.05, 0.95))
        lines.append(
            f"times are irregular: steps are {1e3 * low:.2g} to {1e3 * high:.2g} ms; record the stamps of the "
            "measurement rather than those of its arrival, or even steps"
        )
    if recording.qd is None:
        return lines
    factors = [_rate(motion[rows]) for motion in recording.motions() for rows in _parts(len(motion))]
    known = np.array([factor for factor in factors if np.isfinite(factor)])
    if not len(known):
        return lines
    middle = float(np.median(known))
    spread = 1.4826 * float(np.median(np.abs(known - middle)))
    if abs(middle - 1) > max(_CLOCK, _SURE * spread):
        lines.append(
            f"positions change {middle:.3g} times as fast as recorded velocities say: the clock, or the unit of "
            "velocities, is wrong"
        )
    elif len(known) >= _PARTS and np.ptp(known) > _CLOCK and np.all(np.diff(known) * np.sign(known[-1] - known[0]) > 0):
        lines.append(
            f"the clock drifts: positions change {known[0]:.3g} times as fast as recorded velocities say at first, "
            f"{known[-1]:.3g} times at the end"
        )
    return lines


def _parts(count: int) -> list[slice]:
    edges = np.linspace(0, count, _PARTS + 1).astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(edges)]


def _rate(motion: Recording) -> float:
    """Rates of positions over measured velocities, by least squares over all joints; NaN without motion."""
    assert motion.qd is not None
    if len(motion) <= 2 * _MEAN:
        return np.nan
    # Differences over several samples, beside the mean of the velocities in between by the trapezoidal rule.
    area = np.cumsum(0.5 * (motion.qd[1:] + motion.qd[:-1]) * np.diff(motion.t)[:, np.newaxis], axis=0)
    moved, by_velocity = motion.q[_MEAN + 1 :] - motion.q[1:-_MEAN], area[_MEAN:] - area[:-_MEAN]
    size = float(np.sum(np.square(by_velocity)))
    return float(np.sum(moved * by_velocity)) / size if size > 0 else np.nan


def unexplained_efforts(robot: Robot, scores: Iterable[Score]) -> list[str]:
    """Note on joints whose efforts remain unexplained."""
    with np.errstate(invalid="ignore"):
        bad = np.asarray(np.any([score.relative > _UNEXPLAINED for score in scores], axis=0))
    if not bad.any():
        return []
    names = ", ".join(compress(robot.joint_names, bad))
    return [
        f"most of the effort of {names} remains unexplained; check signs, units, topic and geometry, or excite it more"
    ]


def base_parameters_without_data(regressor: Regressor, deviations: Array) -> list[str]:
    """Note on base parameters with infinite standard deviations (P,)."""
    names = regressor.names[: regressor.inertial]
    infinite = [name for name, s in zip(names, deviations, strict=False) if not np.isfinite(s)]
    if not infinite:
        return []
    listed = f"{'; '.join(infinite[:_NAMED])}{' …' if len(infinite) > _NAMED else ''}"
    return [
        f"{len(infinite)} of {regressor.inertial} base parameters are not identifiable and stay close to the file: "
        f"{listed}"
    ]


def implausible_bodies(robot: Robot, parameters: Array) -> list[str]:
    """Note on bodies whose masses, in (10 B,), differ implausibly from the file's."""
    masses = parameters.reshape(len(robot.joints), -1)[:, 0]
    listed = [
        f"{joint.name} {mass:.2g} instead of {joint.mass:.2g} kg"
        for joint, mass in zip(robot.joints, masses, strict=True)
        if joint.mass and not 1 / _PLAUSIBLE < mass / joint.mass < _PLAUSIBLE
    ]
    if not listed:
        return []
    return [
        f"implausible masses of bodies: {', '.join(listed)}; they stand for what is not modelled, such as efforts in "
        "another unit, or for bodies that the motion does not show"
    ]


def doubtful_terms(
    robot: Robot,
    terms: Mapping[str, Array],
    deviations: Mapping[str, Array],
    of_file: Mapping[str, NDArray[np.bool_]],
) -> list[str]:
    """Notes on terms (n,) by name that are not identifiable or as small as their standard deviation."""
    lines = []
    for name, values in terms.items():
        unknown = ~np.isfinite(deviations[name])
        weak = ~unknown & (np.abs(values) < deviations[name])
        for which, what in (
            (unknown & of_file[name], "not identifiable from these data: as in the file"),
            (unknown & ~of_file[name], "not identifiable from these data but with inertias or other terms together"),
            (weak, "within one standard deviation of zero"),
        ):
            if names := list(compress(robot.joint_names, which)):
                one = len(names) == 1
                plural = "s" if name == "offset" and not one else ""
                lines.append(f"{name}{plural} of {', '.join(names)} {'is' if one else 'are'} {what}")
    return lines


def unit_hints(robot: Robot, recordings: Iterable[Recording]) -> list[str]:
    """Notes on times that do not look like seconds, and efforts that are mostly beyond their limits."""
    found = [hint for each in recordings for hint in (_on_times(robot, each), _on_efforts(robot, each)) if hint]
    return list(dict.fromkeys(found))


def _on_times(robot: Robot, recording: Recording) -> str:
    try:
        rate = 1 / recording.period
    except IdentificationError:
        return ""
    if not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        return f"{recording.name}: are times in seconds? The rate is {rate:.3g} Hz"
    limits = np.array([joint.limits.velocity for joint in robot.independent_joints])
    fastest = np.zeros(robot.n)
    for motion in recording.motions():
        step = max(1, len(motion) // _STEPS)
        steps = np.abs(np.diff(motion.q[::step], axis=0)) / np.diff(motion.t[::step])[:, np.newaxis]
        fastest = np.maximum(fastest, np.max(steps, axis=0, initial=0.0))
    known = np.isfinite(limits) & (fastest > 0)
    if not known.any() or np.any(fastest[known] > _SLOW * limits[known]):
        return ""
    share = float(np.max(fastest[known] / limits[known]))
    return f"{recording.name}: are times in seconds? Velocities stay below {100 * share:.2g} % of their limits"


def in_another_unit(robot: Robot, recordings: Iterable[Recording]) -> tuple[str, ...]:
    """Joints whose efforts are far beyond their limits while others' are not, which suggests another unit.

    Where those of all are, limits of the file may be missing rather than wrong.
    """
    bad, far = np.ones((2, robot.n), dtype=bool)
    for recording in recordings:
        counts, beyond = _beyond_limits(robot, recording)
        bad &= counts > MOSTLY_BEYOND * max(1, len(recording))
        far &= beyond
    return () if bad.all() else tuple(compress(robot.joint_names, bad & far))


def _beyond_limits(robot: Robot, recording: Recording) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Number of efforts (n,) at or beyond the limit of the joint, and whether some are far beyond."""
    limits = np.array([joint.limits.effort for joint in robot.independent_joints])
    size = np.nan_to_num(np.abs(recording.tau))
    counts = np.asarray(np.sum(size >= AT_LIMIT * limits, axis=0))
    return counts, np.asarray(np.quantile(size, 0.99, axis=0) > _FAR * limits)


def _on_efforts(robot: Robot, recording: Recording) -> str:
    beyond, far = _beyond_limits(robot, recording)
    bad = beyond > MOSTLY_BEYOND * max(1, len(recording))
    if not bad.any():
        return ""
    return (
        f"{recording.name}: {int(beyond[bad].sum()):,} of {int(bad.sum()) * len(recording):,} efforts of "
        f"{', '.join(compress(robot.joint_names, bad))} are at or beyond the limits of effort in the robot's file, and "
        f"do not count as saturated; {_MILLI if far[bad].all() else 'check their unit, and the names of joints'}"
    )
