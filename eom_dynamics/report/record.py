# SPDX-License-Identifier: Apache-2.0
"""What was recorded, as arrays by topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..robot import Robot

Array = NDArray[np.float64]
Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """N messages of one topic, in the order of their stamps.

    Attributes:
        topic: its name, or what the samples were made of.
        stamp: (N,) times of the headers, ns.
        recorded: (N,) times at which the recorder took the messages, ns.
        names: of the joints or motors (n,).
        values: (N, n) by field of the message, SI units; NaN where a message lacks it.
        is_recorded: whether these are messages of a bag; else they were computed from others.
    """

    topic: str
    stamp: Nanoseconds
    recorded: Nanoseconds
    names: tuple[str, ...]
    values: Mapping[str, Array]
    is_recorded: bool = True

    def __len__(self) -> int:
        return len(self.stamp)

    def ordered(self, names: tuple[str, ...]) -> Stream:
        """The same with its columns in the order of ``names``, which it has all of."""
        columns = [self.names.index(name) for name in names]
        values = {field: values[:, columns] for field, values in self.values.items()}
        return replace(self, names=names, values=values)


@dataclass(frozen=True)
class Record:
    """One bag, as a page shows it.

    Attributes:
        name: of the bag.
        robot: whose joints they are, for units and limits; None where it is not known.
        setpoint: position … snap, as they were commanded, or fitted to what was measured.
        command: effort, effort_rate, effort_acceleration, at the joints.
        motors: motor_position, motor_velocity, motor_acceleration, motor_effort.
        measured: position, velocity, effort of the joints.
        about: what was computed and not recorded, as a sentence; empty if nothing.
        notes: what is wrong with it, a line each.
    """

    name: str
    robot: Robot | None = None
    setpoint: Stream | None = None
    command: Stream | None = None
    motors: Stream | None = None
    measured: Stream | None = None
    about: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Those that are there and have messages."""
        everything = (self.setpoint, self.command, self.motors, self.measured)
        return tuple(stream for stream in everything if stream)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """All joints that messages name, those of the robot first, in its order; motors of their own last."""
        known = [] if self.robot is None else list(self.robot.joint_names)
        named = [name for stream in self.streams for name in stream.names]
        return tuple(dict.fromkeys([name for name in known if name in named] + named))

    @cached_property
    def origin(self) -> int:
        """Time from which the page counts: the first stamp, ns."""
        return min(int(stream.stamp[0]) for stream in self.streams)

    def t(self, stream: Stream) -> Array:
        """(N,) the stamps of a stream since the origin, s."""
        since: Array = np.multiply(stream.stamp - self.origin, 1e-9, dtype=float)
        return since

    @cached_property
    def duration(self) -> float:
        """From the first stamp to the last, s."""
        return max(float(self.t(stream)[-1]) for stream in self.streams)
