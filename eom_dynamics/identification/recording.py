# SPDX-License-Identifier: Apache-2.0
"""Recordings of a robot as arrays: of its joints, and of both sides of its springs at common uniform times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..exceptions import EomDynamicsError
from ..robot import Robot

# Longest step within a motion, s and in usual steps; interpolation over longer steps would change the motion.
_PAUSE, _PAUSE_STEPS = 0.05, 8
_STILL = 0.5  # s of rest before and after a motion that are not part of it
_DISORDER = (
    5  # longest backward step of reordered messages, in usual steps; longer steps are due to a clock that was set
)
LEAST_SAMPLES = 40  # minimum number of samples of a motion; the filter leaves only transients of shorter motions
REST = 1e-3  # maximum motion of a joint at rest, rad or m

_MOST_SAMPLES, _WINDOW = 36_000, 12_000  # samples of excerpts and of their windows, from all over a recording
_MOST_BLOCKS, _BLOCK = 4, 5.0  # most blocks of a recording that are held out, and the shortest of them, s
_LARGEST = 1e9  # positions beyond, rad or m, and efforts, N m or N, come from damaged messages
_JITTER = 0.01  # maximum deviation of even times, relative to the step


class IdentificationError(EomDynamicsError, ValueError):
    """Recording or settings that do not allow an identification."""


class TooFewSamplesError(IdentificationError):
    """A part of a recording is too short: that to train on, or a block that is held out."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Measured positions and efforts of the joints of a robot.

    Attributes:
        joint_names: the n joints, in the robot's order.
        t: (N,) s; if it does not increase, a clock was set, and a new motion starts.
        q: joint positions (N, n), rad or m.
        tau: joint efforts (N, n), N m or N; NaN if not recorded.
        qd: joint velocities (N, n), or None if they were not recorded.
        name: of the recording, for messages.
        notes: on the recording, one line each.
        pieces: number of parts, with pauses in between.
        assumed: joints without recorded positions, because they are locked, or only their motors were recorded.
        others: recorded names of joints that the robot does not have.
        scale_deviation: (n,) relative standard deviations of the scale of the efforts, as of identified springs.
        source: topics or columns that were read, for messages.
    """

    joint_names: tuple[str, ...]
    t: Array
    q: Array
    tau: Array
    qd: Array | None = None
    name: str = "recording"
    notes: tuple[str, ...] = ()
    pieces: int = 1
    assumed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    scale_deviation: Array | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Check shapes; raises IdentificationError."""
        _check_shapes(self, ("q", "tau", "qd"), len(self.joint_names), f"{self.name}: ")

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Recording:
        qd = None if self.qd is None else self.qd[rows]
        return replace(self, t=self.t[rows], q=self.q[rows], tau=self.tau[rows], qd=qd)

    @property
    def period(self) -> float:
        """Typical sample period, s.

        Raises:
            IdentificationError: there are not enough samples.
        """
        steps = np.diff(self.t)
        forward = steps[steps > 0]
        if len(forward) < LEAST_SAMPLES - 1:
            raise IdentificationError(
                f"{self.name}: has {len(self):,} samples with increasing times, at least {LEAST_SAMPLES} are needed: "
                f"{'; '.join([*self.notes, 'record for longer'])}"
            )
        return float(np.median(forward))

    def _cuts(self) -> list[int]:
        """First samples of the second and further motions."""
        steps = np.diff(self.t)
        return (np.flatnonzero((steps <= 0) | (steps > self._longest_step)) + 1).tolist()

    @property
    def _longest_step(self) -> float:
        """Longest step within a motion, s."""
        return max(_PAUSE, _PAUSE_STEPS * self.period)

    @property
    def duration(self) -> float:
        """Sum of the durations of all motions, s."""
        return sum(float(motion.t[-1] - motion.t[0]) for motion in self.motions())

    @property
    def in_motion(self) -> slice:
        """Samples between rest at the start and at the end, of half a second; all if no joint moves."""
        away = [np.flatnonzero((np.abs(self.q - end) > REST).any(axis=1)) for end in (self.q[:1], self.q[-1:])]
        if not all(map(len, away)) or away[0][0] >= away[1][-1]:
            return slice(0, len(self))
        first, last, pause = int(away[0][0]), int(away[1][-1]), max(_STILL, self._longest_step)
        return slice(
            first if self.t[first] - self.t[0] > pause else 0,
            last + 1 if self.t[-1] - self.t[last] > pause else len(self),
        )

    def with_note(self, note: str) -> Recording:
        """This recording with an additional note."""
        return replace(self, notes=(*self.notes, note))

    def without_delay(self, delay: float) -> Recording:
        """This recording, cleaned, with efforts advanced by their ``delay``, s.

        Raises:
            IdentificationError: there are not enough samples.
        """
        clean = self.cleaned()
        tau = np.full_like(clean.tau, np.nan)
        for rows in np.split(np.arange(len(clean)), clean._cuts()):
            t = clean.t[rows]
            for column, recorded in zip(tau.T, clean.tau.T, strict=True):
                known = np.isfinite(recorded[rows])
                if known.any():
                    column[rows] = np.interp(t + delay, t[known], recorded[rows][known], np.nan, np.nan)
        return replace(clean, tau=tau)

    def cleaned(self) -> Recording:
        """Drop samples that are not finite or repeat a time; notes count them.

        Samples come in the order of their times. Efforts that are the same throughout were not measured: NaN.
        """
        finite = np.isfinite(self.t) & (np.abs(self.q) <= _LARGEST).all(axis=1)
        finite &= (np.abs(np.where(np.isnan(self.tau), 0.0, self.tau)) <= _LARGEST).all(axis=1)
        clean = self._drop_samples(~finite, "are not finite or far too large")._in_order()
        clean = clean._drop_samples(np.diff(clean.t, prepend=np.nan) == 0, "have the time of another")
        lowest, highest = (f.reduce(clean.tau, axis=0, initial=x) for f, x in ((np.fmin, np.inf), (np.fmax, -np.inf)))
        same = lowest == highest
        return replace(clean, tau=np.where(same, np.nan, clean.tau)) if same.any() else clean

    def _drop_samples(self, bad: NDArray[np.bool_], reason: str) -> Recording:
        if not bad.any():
            return self
        return self[~bad].with_note(f"{np.sum(bad):,} samples {reason}, and are dropped")

    def _in_order(self) -> Recording:
        steps = np.diff(self.t)
        if not np.any(steps < 0):
            return self
        set_back = steps < -_DISORDER * np.median(np.abs(steps[steps != 0]))
        if set_back.sum() * LEAST_SAMPLES > len(self):
            set_back[:] = False  # so many would leave no samples between them
        order = np.lexsort((self.t, np.append(0, np.cumsum(set_back))))
        moved = int(np.sum(order != np.arange(len(self))))
        note = f"{moved:,} samples are not in the order of their times; sorted"
        return self[order].with_note(note) if moved else self

    def motions(self) -> Iterator[Recording]:
        """Yield the motions: parts between pauses and clock jumps."""
        for start, end in pairwise([0, *self._cuts(), len(self)]):
            if end - start >= LEAST_SAMPLES:
                yield self[start:end]

    @property
    def no_motion(self) -> IdentificationError:
        """Error of a recording without motions."""
        gap = f"a gap of more than {self._longest_step:.2g} s"
        return IdentificationError(f"{self.name}: nowhere are {LEAST_SAMPLES} samples without {gap}")

    def excerpts(self) -> list[Recording]:
        """Motions of this recording, cleaned; windows spread over a long one."""
        motions = list(self.cleaned().motions())
        total = sum(map(len, motions))
        if total <= _MOST_SAMPLES:
            return motions
        result = []
        for motion in motions:
            windows = max(1, round(_MOST_SAMPLES / _WINDOW * len(motion) / total))
            length = min(_WINDOW, len(motion))
            starts = np.linspace(0, len(motion) - length, windows).astype(int).tolist()
            result += [motion[start : start + length] for start in starts]
        return result

    def held_out(self, share: float) -> tuple[Recording, Recording, list[tuple[float, float]]]:
        """Recording for training, held-out blocks, and their start and end times, s.

        Blocks are the last ``share`` of up to four equal parts of the motion, each block of some seconds, so that poses
        and temperatures of all motion are in both. A motion of a few seconds has one block, at its end. Rest before and
        after the motion is for training.

        Raises:
            IdentificationError: the share is not between 0 and 1, or a part has too few samples.
        """
        self = self.cleaned()  # here, so that notes count the samples of the whole
        rows = self.in_motion
        motion = replace(self[rows], name=f"{self.name}, part with motion")
        motion.split(share)  # checks
        count = max(1, min(_MOST_BLOCKS, int(share * motion.duration / _BLOCK)))
        edges = np.linspace(rows.start, rows.stop, count + 1).astype(int)
        held, spans = np.zeros(len(self), dtype=bool), []
        for start, end in pairwise(edges.tolist()):
            first = end - round((end - start) * share)
            held[first:end] = True
            spans.append((float(self.t[first]), float(self.t[end]) if end < len(self) else np.inf))
        used = ~held
        pieces = count + int(used[-1])
        return replace(self[used], pieces=pieces), replace(self[held], pieces=count), spans

    def split(self, share: float) -> tuple[Recording, Recording]:
        """Split off the last ``share`` (0 to 1) of the samples for validation.

        Raises:
            IdentificationError: the share is not between 0 and 1, or a part has too few samples.
        """
        if not 0 < share < 1:
            raise IdentificationError(f"the share to hold out must be between 0 and 1, is {share:g}")
        self = self._in_order()
        first = round(len(self) * (1 - share))
        if min(first, len(self) - first) < LEAST_SAMPLES:
            raise TooFewSamplesError(
                f"{self.name}: has {len(self):,} samples, too few to hold out {share:g} of them; at least "
                f"{LEAST_SAMPLES} are needed on each side"
            )
        return self[:first], self[first:]


@dataclass(frozen=True, eq=False)
class ArmRecording:
    """Recording of both sides of the springs of n joints, in the robot's order, at uniform times.

    Attributes:
        t: (N,) s.
        q, qd: (N, n) positions and velocities of the links, rad or m, and per s; velocities None if not recorded.
        tau: (N, n) efforts of the springs, N m or N; NaN if not recorded.
        theta: (N, n) positions of the motors on the link side of the gears, rad or m.
        motor_effort: (N, n) on the link side of the gears, N m or N; NaN if not recorded.
        current: (N, n) of the motors, A; None if not recorded.
        starts: first samples of the second and further motions of joined recordings.
        scale_deviation: of ``tau``, as in :class:`Recording`.
    """

    t: Array
    q: Array
    qd: Array | None
    tau: Array
    theta: Array
    motor_effort: Array
    current: Array | None = None
    starts: tuple[int, ...] = ()
    scale_deviation: Array | None = None

    def __post_init__(self) -> None:
        """Check shapes; raises IdentificationError."""
        _check_shapes(self, ("q", "qd", "tau", "theta", "motor_effort", "current"), np.shape(self.q)[-1])

    def centered(self, delay: float) -> ArmRecording:
        """The recording with motor efforts and currents advanced by ``delay``, s; the ends are held."""

        def earlier(values: Array) -> Array:
            return np.stack([np.interp(self.t + delay, self.t, x) for x in values.T], axis=1)

        current = None if self.current is None else earlier(self.current)
        return replace(self, motor_effort=earlier(self.motor_effort), current=current)

    def links(self, robot: Robot, name: str) -> Recording:
        """The recording of the link side."""
        return Recording(
            robot.joint_names, self.t, self.q, self.tau, self.qd, name, scale_deviation=self.scale_deviation
        )


def _check_shapes(recording: Recording | ArmRecording, names: Sequence[str], n: int, where: str = "") -> None:
    """Raise IdentificationError unless the named signals have the shape (N, n), as the times."""
    shape = (len(recording.t), n)
    for name in names:
        values = getattr(recording, name)
        if values is not None and np.shape(values) != shape:
            raise IdentificationError(f"{where}{name} has the shape {np.shape(values)}, must have {shape}")


def joined_motions(parts: Sequence[ArmRecording]) -> ArmRecording:
    """Motions with the same sample period, joined to one recording with ``starts``."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.t) for part in parts)]).tolist()
    period = (parts[0].t[-1] - parts[0].t[0]) / (len(parts[0].t) - 1)
    columns = {}
    for name in ("q", "qd", "tau", "theta", "motor_effort", "current"):
        values = [getattr(part, name) for part in parts]
        columns[name] = None if any(x is None for x in values) else np.concatenate(values)
    starts = [at + start for part, at in zip(parts, ends, strict=False) for start in (0, *part.starts)]
    return ArmRecording(period * np.arange(ends[-1]), **columns, starts=tuple(starts[1:]))  # type: ignore[arg-type]


def both_sides(
    links: Recording, motors: Recording, currents: Recording | None = None, *, period: float | None = None
) -> list[ArmRecording]:
    """Resample recordings of both sides of the springs at common uniform times, as far as both have samples.

    Args:
        links: positions and efforts of the links.
        motors: positions and efforts of the motors on the link side of the gears, on the same clock.
        currents: of the motors, A, as efforts.
        period: step of the times, s; by default the step of the links.

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

    def overlap(motions: Sequence[Recording]) -> float:
        return float(min(motion.t[-1] for motion in motions) - max(motion.t[0] for motion in motions))

    groups: list[tuple[Recording, ...]] = [()]
    for side in sides:
        if not (pieces := list(side.motions())):
            raise side.no_motion
        starts, ends = ([piece.t[k] for piece in pieces] for k in (0, -1))
        extended = []
        for group in groups:
            start, end = max((x.t[0] for x in group), default=-np.inf), min((x.t[-1] for x in group), default=np.inf)
            extended += [(*group, x) for x in pieces[bisect_left(ends, start) : bisect_right(starts, end)]]
        groups = [group for group in extended if overlap(group) >= LEAST_SAMPLES * step]
    if not groups:
        ranges = ", ".join(f"{side.t[0]:.6g} to {side.t[-1]:.6g} s" for side in sides if len(side))
        raise IdentificationError(f"{links.name}: links and motors were not recorded at the same time: {ranges}")
    return [_at_common_times(group, step) for group in groups]


def _recorded(side: Recording) -> Recording:
    """The part of a recording without missing efforts at its ends, and without gaps of a motion's longest step."""
    known = ~np.isnan(side.tau)
    known = known[:, known.any(axis=0)]
    complete = np.flatnonzero(known.all(axis=1))
    if not len(complete):
        return side
    rows = np.zeros(len(side), dtype=bool)
    rows[complete[0] : complete[-1] + 1] = True
    for column in known.T:
        at = np.flatnonzero(column)
        for k in np.flatnonzero(np.diff(side.t[at]) > side._longest_step):
            rows[at[k] + 1 : at[k + 1]] = False
    return side if rows.all() else side[rows]


def _at_common_times(sides: Sequence[Recording], period: float) -> ArmRecording:
    links, motors, *currents = sides
    start, end = max(side.t[0] for side in sides), min(side.t[-1] for side in sides)
    # Samples of the links are unchanged if their times are even.
    start = float(links.t[np.searchsorted(links.t, start - _JITTER * period)])
    t = np.asarray(start + period * np.arange(int((end - start) / period + _JITTER) + 1), dtype=float)
    qd = None if links.qd is None else _at(t, links.t, links.qd)
    current = _at(t, currents[0].t, currents[0].tau) if currents else None
    q, tau, theta, effort = (_at(t, side.t, x) for side in (links, motors) for x in (side.q, side.tau))
    return ArmRecording(t, q, qd, tau, theta, effort, current)


def _at(times: Array, t: Array, values: Array) -> Array:
    """Values (N, n) at other times, NaN in columns that were not recorded."""
    from scipy.interpolate import PchipInterpolator  # here, since options of commands import this module

    tolerance = _JITTER * (times[1] - times[0])
    first = int(np.searchsorted(t, times[0] - tolerance))
    rows = slice(first, first + len(times))
    whole = np.isnan(values[rows]).all(axis=0) | np.isfinite(values[rows]).all(axis=0)
    if len(t[rows]) == len(times) and np.max(np.abs(t[rows] - times)) <= tolerance and whole.all():
        return np.asarray(values[rows])
    result = np.full((len(times), values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        known = np.isfinite(column)
        if np.count_nonzero(known) > 1:
            result[:, k] = PchipInterpolator(t[known], column[known])(np.clip(times, t[known][0], t[known][-1]))
    return result


def recording_notes(robot: Robot, training: Sequence[Recording], validation: Sequence[Recording]) -> list[str]:
    """Notes on recordings; IdentificationError for useless recordings, or recordings of another robot.

    Training recordings alone decide which parameters are identifiable.
    """
    notes, names = [], robot.joint_names
    for k, recording in enumerate((*training, *validation)):
        if recording.joint_names != names:
            raise IdentificationError(
                f"{recording.name}: has the joints {', '.join(recording.joint_names)}, the robot {', '.join(names)}"
            )
        clean = recording.cleaned()
        lines, motions = list(clean.notes), sum(1 for _ in clean.motions())
        if motions > recording.pieces:
            separate = motions - recording.pieces + 1  # other pieces are separated by held-out blocks
            lines.append(f"pauses, lost samples or jumps of the clock separate {separate} motions")
        still, silent = (np.asarray(x) for x in (np.ptp(clean.q, axis=0) <= REST, np.isnan(clean.tau).all(axis=0)))
        if still.all():
            where = "" if k < len(training) else " in the validation data"
            raise IdentificationError(
                f"{recording.name}: no joint moves{where}; record a motion, as of eom_dynamics excite"
            )
        if silent.all():
            raise IdentificationError(
                f"{recording.name}: efforts are missing or the same throughout; record them in JointState.effort, "
                "or in columns effort.NAME of a table, or name their topic, --effort-topic"
            )
        if k < len(training):
            words = "does not move; its friction and the inertias that only its motion excites are not identifiable"
            lines += [f"{name} {words}" for name in compress(names, still)]
            words = "has no effort, or the same throughout; its equations are not used"
        else:
            words = "has no effort in the validation data, or the same throughout; it is not validated"
        lines += [f"{name} {words}" for name in compress(names, silent)]
        notes += [f"{recording.name}: {line}" for line in lines]
    return list(dict.fromkeys(notes))
