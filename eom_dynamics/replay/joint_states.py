# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions out of a bag, fitted with a motion that has four time derivatives.

The fit goes through the recording in windows that overlap, so that memory does not grow with its length: of each
window the inner part counts, and how far neighbours are apart where they meet is measured. Where the recording pauses,
or a clock is set back, each side is a motion of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ..bags import Bag, BagError, Layouts, Rows, Topic
from ..exceptions import TrajectoryError
from ..stream.conversions import STATE_FIELDS
from ..trajectory import fit
from .batch import Batch, Refusals, Stamps
from .repeats import Repeats

Array = NDArray[np.float64]

TYPE = "sensor_msgs/msg/JointState"

WINDOW = 16384
"""Samples of a window's inner part."""

MARGIN_PERIODS = 16.0
"""Overlap on each side of a window, in periods of the cutoff. A sample further away counts exp(-0.31 2π 16) = 3e-14."""

PAUSE = 0.5
"""Time without a message, s, after which another motion begins; and at least PAUSE_PERIODS times the usual."""

PAUSE_PERIODS = 20

LEAST_SAMPLES = 20
"""A motion with fewer is not fitted."""

LARGEST_POSITION = 1e9
"""Positions beyond are of damaged messages, rad or m; one of them would spoil the fit of all others."""


@dataclass
class FitFigures:
    """How far the fit is from what was measured, and from itself.

    Attributes:
        count: samples.
        squares: (n,) sums of squared deviations, rad² or m².
        largest: (n,) largest deviations, rad or m.
        seam: (n,) largest step in position where two windows meet, rad or m.
        repeats: samples with the positions of the one before, amid a motion.
    """

    count: int = 0
    squares: Array = field(default_factory=lambda: np.zeros(0))
    largest: Array = field(default_factory=lambda: np.zeros(0))
    seam: Array = field(default_factory=lambda: np.zeros(0))
    repeats: Repeats = field(default_factory=Repeats)

    def add(self, deviation: Array) -> None:
        """Take deviations (N, n)."""
        n = deviation.shape[1]
        if not self.count:
            self.squares, self.largest, self.seam = np.zeros(n), np.zeros(n), np.zeros(n)
        self.count += len(deviation)
        self.squares += np.sum(deviation**2, axis=0)
        self.largest = np.maximum(self.largest, np.max(np.abs(deviation), axis=0))

    @property
    def rms(self) -> Array:
        """(n,) root mean square of the deviations, rad or m."""
        return np.asarray(np.sqrt(self.squares / max(1, self.count)), dtype=float)


@dataclass(frozen=True)
class _Samples:
    """Samples (N,) in the robot's order of joints; positions and efforts (N, n), efforts nan where there are none."""

    stamps: Stamps
    time: NDArray[np.int64]
    position: Array
    effort: Array

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> _Samples:
        return _Samples(self.stamps[rows], self.time[rows], self.position[rows], self.effort[rows])


def joint_state_batches(
    bag: Bag,
    topic: Topic,
    joint_names: tuple[str, ...],
    cutoff: float,
    refusals: Refusals,
    figures: FitFigures,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Batch]:
    """The states of the motion that was measured, at the times at which it was.

    Args:
        bag, topic: where the positions are.
        joint_names: of the robot; messages may have others beside these.
        cutoff: Hz; the fit follows what is slower, and takes what is faster for noise.
        refusals: takes what cannot be used.
        figures: takes how far the fit is off.
        progress: is told the share of the bag that is behind.
    """
    samples = _samples(bag, topic, joint_names, refusals, progress)
    for motion in _motions(_watched(samples, figures.repeats)):
        yield from _fitted(motion, list(joint_names), cutoff, refusals, figures)


def _samples(
    bag: Bag,
    topic: Topic,
    joint_names: tuple[str, ...],
    refusals: Refusals,
    progress: Callable[[float], None] | None,
) -> Iterator[_Samples]:
    """What was recorded, in blocks; times increase but where a clock was set back."""
    store = topic.types()
    fields = {name for name, _ in store.fielddefs[topic.type][1]}
    if missing := {"header", "name", "position"} - fields:
        raise BagError(
            f"topic {topic.name}: by the bag's own definition of {topic.type} it has no {', '.join(missing)}"
        )
    layouts = Layouts(store, topic.type)
    order = _Order()
    for times, messages in bag.messages(topic, progress):
        recorded = np.array(times, dtype=np.int64)
        for part in layouts.rows(messages):
            if not isinstance(part, Rows):
                refusals.add(str(part[1]), times[part[0]])
                continue
            start, layout, rows = part
            at = recorded[start : start + len(rows)]
            names = list(layout.message.name)
            position = layout.numbers(rows, "position")
            if reason := _misnamed(names, joint_names, position.shape[1]):
                refusals.add(reason, int(at[0]), len(rows))
                continue
            columns = [names.index(name) for name in joint_names]
            effort = layout.numbers(rows, "effort") if layout.has("effort") else np.empty((len(rows), 0))
            if effort.shape[1] != len(names):
                effort = np.full(position.shape, np.nan)
            stamps = Stamps(
                at,
                layout.numbers(rows, "header.stamp.sec")[:, 0],
                layout.numbers(rows, "header.stamp.nanosec")[:, 0],
            )
            # A publisher without a clock leaves the header's stamp zero.
            time = stamps.header if stamps.header.any() else at
            samples = _Samples(stamps, time, position[:, columns].astype(float), effort[:, columns].astype(float))
            finite = (np.abs(samples.position) <= LARGEST_POSITION).all(axis=1)
            forward = np.ones(len(rows), dtype=bool)
            forward[finite] = order.take(time[finite])
            for bad, reason in (
                (~finite, f"position is not finite, or beyond {LARGEST_POSITION:g}"),
                (~forward, "stamp does not increase"),
            ):
                if bad.any():
                    refusals.add(reason, int(at[bad][0]), int(bad.sum()))
            rows_kept = np.flatnonzero(finite & forward)
            if len(rows_kept):
                yield _Samples(
                    stamps[rows_kept], time[rows_kept], samples.position[rows_kept], samples.effort[rows_kept]
                )


def _watched(blocks: Iterator[_Samples], repeats: Repeats) -> Iterator[_Samples]:
    for block in blocks:
        repeats.add(block.position, block.stamps.recorded)
        yield block


def _misnamed(names: list[str], joint_names: tuple[str, ...], entries: int) -> str:
    """Why a message with these names and so many positions is not one of the robot; empty if it is."""
    if lacking := [name for name in joint_names if name not in names]:
        there = f"has {', '.join(names)}" if names else "is empty"
        return f"joint {', '.join(lacking)} of the robot is not in name, which {there}"[:500]
    if double := [name for name in joint_names if names.count(name) > 1]:
        return f"joint {', '.join(double)} is more than once in name"[:500]
    return f"position has {entries} entries, name has {len(names)}" if entries != len(names) else ""


class _Order:
    """Tells stamps that increase; one that goes back by a pause is of a clock that was set, and begins anew."""

    def __init__(self) -> None:
        self._before: int | None = None
        self._newest = -(2**63)

    def take(self, time: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the stamps (N,) in ns, the next ones, are later than all others since the clock was last set."""
        forward = np.zeros(len(time), dtype=bool)
        if not len(time):
            return forward
        steps = np.diff(time, prepend=time[0] if self._before is None else self._before)
        jumps = np.flatnonzero(steps < -PAUSE * 1e9).tolist()
        for start, end in zip([0, *jumps], [*jumps, len(time)], strict=True):
            if start in jumps:
                self._newest = -(2**63)
            newest = np.maximum.accumulate(np.concatenate([[self._newest], time[start:end]]))
            forward[start:end] = time[start:end] > newest[:-1]
            self._newest = int(newest[-1])
        self._before = int(time[-1])
        return forward


def _motions(blocks: Iterator[_Samples]) -> Iterator[Iterator[_Samples]]:
    """Motions between two pauses, each as blocks of samples; each is to be gone through before the next."""
    for _, group in groupby(_numbered(blocks), key=itemgetter(0)):
        yield (block for _, block in group)


def _numbered(blocks: Iterator[_Samples]) -> Iterator[tuple[int, _Samples]]:
    """Blocks, cut where there is a pause or a clock was set back, with the number of their motion."""
    number, last, usual = 0, None, 0.0
    for block in blocks:
        steps = np.diff(block.time, prepend=block.time[0] if last is None else last)
        last = int(block.time[-1])
        if len(steps) > 1:
            usual = float(np.median(steps[1:]))
        pauses = np.flatnonzero((steps > max(PAUSE * 1e9, PAUSE_PERIODS * usual)) | (steps < 0)).tolist()
        for start, end in zip([0, *pauses], [*pauses, len(block)], strict=True):
            number += start in pauses
            if start < end:
                yield number, block[start:end]


def _fitted(
    blocks: Iterator[_Samples], names: list[str], cutoff: float, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    """The states of one motion, window by window."""
    margin = round(min(MARGIN_PERIODS / cutoff * 1e9, 2.0**62))
    before: _Window | None = None
    held: list[_Samples] = []
    inner, count = 0, 0
    for block in chain(blocks, [None]):
        if block is not None:
            held.append(block)
            count += len(block)
            if count <= inner + WINDOW or block.time[-1] < held[0].time[0] + margin:
                continue
        samples = _joined(held)
        if len(samples) < LEAST_SAMPLES:
            refusals.add(
                f"a motion of fewer than {LEAST_SAMPLES} samples is not fitted", int(samples.stamps.recorded[0]), count
            )
            return
        while True:
            end = inner + WINDOW
            right = len(samples)
            if end < len(samples) and (block is None or samples.time[-1] >= samples.time[end] + margin):
                right = int(np.searchsorted(samples.time, samples.time[end] + margin, side="right"))
            elif block is None:
                end = len(samples)
            else:
                break
            try:
                window = _Window(samples[:right], cutoff)
                states = window.states(samples.time[inner:end])
            except TrajectoryError as error:
                refusals.add(str(error), int(samples.stamps.recorded[inner]), end - inner)
            else:
                part = samples[inner:end]
                figures.add(part.position - states[0])
                if before is not None:
                    step = np.abs(before.states(part.time[:1])[0][0] - states[0][0])
                    figures.seam = np.maximum(figures.seam, step)
                before = window
                measured = None if np.isnan(part.effort).all() else part.effort
                yield Batch(part.stamps, "", names, dict(zip(STATE_FIELDS, states, strict=True)), measured)
            if end == len(samples):
                return
            left = int(np.searchsorted(samples.time, samples.time[end] - margin))
            samples, inner = samples[left:], end - left
        held, count = [samples], len(samples)


class _Window:
    """The motion fitted to some samples; times in ns, from which the first sample's is taken before rounding."""

    def __init__(self, samples: _Samples, cutoff: float) -> None:
        self._origin = samples.time[0]
        self._motion = fit(self._seconds(samples.time), samples.position, cutoff=cutoff).trajectory

    def states(self, time: NDArray[np.int64]) -> tuple[Array, ...]:
        """q to qdddd, each (N, n), at times (N,)."""
        return tuple(self._motion.derivatives(self._seconds(time), order=4))

    def _seconds(self, time: NDArray[np.int64]) -> Array:
        return (time - self._origin) * 1e-9


def _joined(parts: list[_Samples]) -> _Samples:
    stamps = [part.stamps for part in parts]
    return _Samples(
        Stamps(
            np.concatenate([part.recorded for part in stamps]),
            np.concatenate([part.sec for part in stamps]),
            np.concatenate([part.nanosec for part in stamps]),
        ),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.effort for part in parts]),
    )
