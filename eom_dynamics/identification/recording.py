# SPDX-License-Identifier: Apache-2.0
"""A recording of a robot as arrays: measured positions and efforts of its joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .exceptions import IdentificationError

# s, and in usual steps: a longer step separates two motions, as for replay.
_PAUSE, _PAUSE_STEPS = 0.5, 20

# Steps back in time that are messages in another order, in usual steps; longer ones are those of a clock that was set.
_DISORDER = 5

# A motion with fewer samples is not used: a filter has nothing left but its transients.
LEAST_SAMPLES = 40

# Samples of excerpts: windows from all over a longer recording are enough for many a purpose.
_MOST_SAMPLES, _WINDOW = 36_000, 12_000

# Most blocks of a recording that are held out, and the shortest of them, s.
_MOST_BLOCKS, _BLOCK = 4, 5.0

# Positions beyond, rad or m, and efforts, N m or N, come from damaged messages.
_LARGEST = 1e9


@dataclass(frozen=True, eq=False)
class Recording:
    """Measured positions and efforts of the joints of a robot.

    Attributes:
        joint_names: the n joints, in the robot's order.
        t: (N,) s; where it does not increase, a clock was set, and a new motion begins.
        q: joint positions (N, n), rad or m.
        tau: joint efforts (N, n), N m or N; NaN where an effort was not recorded.
        qd: joint velocities (N, n), or None if they were not recorded.
        name: of the recording, for messages.
        notes: on the recording, one line each.
        pieces: number of parts, with pauses in between, of which it was made up.
        assumed: joints whose positions were not recorded, and are taken to be zero.
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

    def __post_init__(self) -> None:
        """Check shapes; raises IdentificationError."""
        shape = (len(self.t), len(self.joint_names))
        for name in ("q", "tau", "qd"):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise IdentificationError(f"{self.name}: {name} has the shape {values.shape}, must have {shape}")

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
        if len(forward) < LEAST_SAMPLES:
            raise IdentificationError(
                f"{self.name}: has {len(self):,} samples with increasing times, at least {LEAST_SAMPLES + 1} are needed"
            )
        return float(np.median(forward))

    def _cuts(self) -> list[int]:
        """Samples at which the second and further motions begin."""
        steps, longest = np.diff(self.t), max(_PAUSE, _PAUSE_STEPS * self.period)
        cuts: list[int] = (np.flatnonzero((steps <= 0) | (steps > longest)) + 1).tolist()
        return cuts

    @property
    def duration(self) -> float:
        """Sum of the durations of all motions, s."""
        return sum(float(motion.t[-1] - motion.t[0]) for motion in self.motions())

    def with_note(self, note: str) -> Recording:
        """This recording with one more note."""
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
            for own, recorded in zip(tau.T, clean.tau.T, strict=True):
                known = np.isfinite(recorded[rows])
                if known.any():
                    own[rows] = np.interp(t + delay, t[known], recorded[rows][known], np.nan, np.nan)
        return replace(clean, tau=tau)

    def cleaned(self) -> Recording:
        """Leave out samples that are not finite or repeat a time; notes count them.

        Samples come in the order of their times. Efforts that are the same throughout were not measured: NaN.
        """
        return self._finite()._in_order()._without_repeated_times()._measured()

    def _finite(self) -> Recording:
        finite = np.isfinite(self.t) & (np.abs(self.q) <= _LARGEST).all(axis=1)
        recorded = np.where(np.isnan(self.tau), 0.0, self.tau)
        finite &= (np.abs(recorded) <= _LARGEST).all(axis=1)
        return self._without(~finite, "are not finite or far too large")

    def _without_repeated_times(self) -> Recording:
        return self._without(np.append(False, np.diff(self.t) == 0)[: len(self)], "have the time of another")

    def _without(self, bad: NDArray[np.bool_], reason: str) -> Recording:
        if not bad.any():
            return self
        return self[~bad].with_note(f"{np.sum(bad):,} samples {reason}, and are left out")

    def _in_order(self) -> Recording:
        steps = np.diff(self.t)
        if not np.any(steps < 0):
            return self
        set_back = steps < -_DISORDER * np.median(np.abs(steps[steps != 0]))
        if set_back.sum() * LEAST_SAMPLES > len(self):
            set_back[:] = False  # nothing would be left between so many
        order = np.lexsort((self.t, np.append(0, np.cumsum(set_back))))
        moved = int(np.sum(order != np.arange(len(self))))
        return (
            self[order].with_note(f"{moved:,} samples are not in the order of their times; sorted") if moved else self
        )

    def _measured(self) -> Recording:
        lowest, highest = (f.reduce(self.tau, axis=0, initial=x) for f, x in ((np.fmin, np.inf), (np.fmax, -np.inf)))
        same = lowest == highest
        return replace(self, tau=np.where(same, np.nan, self.tau)) if same.any() else self

    def motions(self) -> Iterator[Recording]:
        """Yield the motions: parts between pauses and clock jumps."""
        for start, end in pairwise([0, *self._cuts(), len(self)]):
            if end - start >= LEAST_SAMPLES:
                yield self[start:end]

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

        Blocks are the last ``share`` of up to four equal parts, each block of some seconds, so that poses and
        temperatures of all of the recording are in both; a recording of a few seconds has one, at its end.

        Raises:
            IdentificationError: the share is not between 0 and 1, or a part has too few samples.
        """
        self.split(share)  # checks
        self = self.cleaned()  # here, so that notes count the samples of the whole
        count = max(1, min(_MOST_BLOCKS, int(share * self.duration / _BLOCK)))
        edges = np.linspace(0, len(self), count + 1).astype(int)
        held, spans = np.zeros(len(self), dtype=bool), []
        for start, end in pairwise(edges.tolist()):
            first = end - round((end - start) * share)
            held[first:end] = True
            spans.append((float(self.t[first]), float(self.t[end]) if end < len(self) else np.inf))
        return replace(self[~held], pieces=count), replace(self[held], pieces=count), spans

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
            raise IdentificationError(
                f"{self.name}: has {len(self):,} samples, too few to hold out {share:g} of them; at least "
                f"{LEAST_SAMPLES} are needed on each side"
            )
        return self[:first], self[first:]
