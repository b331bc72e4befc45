# SPDX-License-Identifier: Apache-2.0
"""A recording of a robot as arrays: measured positions and efforts of its joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .exceptions import IdentificationError

# s, and in usual steps: a longer step separates two motions, as for replay.
_PAUSE, _PAUSE_STEPS = 0.5, 20

# A motion with fewer samples is not used: a filter has nothing left but its transients.
LEAST_SAMPLES = 40

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
        notes: what is to be known of the recording, a line each.
    """

    joint_names: tuple[str, ...]
    t: Array
    q: Array
    tau: Array
    qd: Array | None = None
    name: str = "recording"
    notes: tuple[str, ...] = ()

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
        """Usual time between two samples, s.

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

    @property
    def duration(self) -> float:
        """Sum of the durations of all motions, s."""
        return sum(float(motion.t[-1] - motion.t[0]) for motion in self.motions())

    def with_note(self, note: str) -> Recording:
        """This recording with one more line on it."""
        return replace(self, notes=(*self.notes, note))

    def cleaned(self) -> Recording:
        """Leave out samples that are not finite or have the same time as the one before, and count them."""
        finite = np.isfinite(self.t) & (np.abs(self.q) <= _LARGEST).all(axis=1)
        recorded = np.where(np.isnan(self.tau), 0.0, self.tau)
        finite &= (np.abs(recorded) <= _LARGEST).all(axis=1)
        again = np.zeros(len(self), dtype=bool)
        again[1:] = np.diff(self.t) == 0
        result = self
        for bad, reason in ((~finite, "are not finite or far too large"), (finite & again, "have the time of another")):
            if bad.any():
                result = result.with_note(f"{np.sum(bad):,} samples {reason}, and are left out")
        return result[finite & ~again] if (~finite | again).any() else result

    def motions(self) -> Iterator[Recording]:
        """Yield the parts between pauses, and where the clock was set."""
        steps, period = np.diff(self.t), self.period
        cuts = np.flatnonzero((steps <= 0) | (steps > max(_PAUSE, _PAUSE_STEPS * period))) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(self)], strict=True):
            if end - start >= LEAST_SAMPLES:
                yield self[start:end]

    def split(self, share: float) -> tuple[Recording, Recording]:
        """The first part, and the last ``share`` of the samples, 0 to 1, to judge by.

        Raises:
            IdentificationError: a part has too few samples.
        """
        first = round(len(self) * (1 - share))
        if min(first, len(self) - first) < LEAST_SAMPLES:
            raise IdentificationError(
                f"{self.name}: has {len(self):,} samples, too few to hold out {share:g} of them; at least "
                f"{LEAST_SAMPLES} are needed on each side"
            )
        return self[:first], self[first:]
