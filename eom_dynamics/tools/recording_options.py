# SPDX-License-Identifier: Apache-2.0
"""Conventions of a recording: joint names and effort units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..bags import BagError
from ..spelling import hint


@dataclass(frozen=True)
class Conventions:
    """Mapping of a recording's names and efforts to the robot's; by default they are the same.

    Attributes:
        rename: regular expressions and their replacements, applied in this order to each name of a joint.
        effort_scale: effort for a recorded 1, such as N m/A of a recorded current; by joint, None for all others.
        effort_offset: added after that, N m or N; by joint, None for all others.
    """

    rename: tuple[tuple[str, str], ...] = ()
    effort_scale: tuple[tuple[str | None, float], ...] = ()
    effort_offset: tuple[tuple[str | None, float], ...] = ()

    def names(self, recorded: Iterable[str]) -> list[str]:
        """Return the robot's names for those of a recording."""
        names = list(recorded)
        for pattern, replacement in self.rename:
            names = [re.sub(pattern, replacement, name) for name in names]
        return names

    def efforts(self, joints: Sequence[str], recorded: Array) -> Array:
        """Return efforts (N, n) of the robot's joints for recorded ones, N m or N."""
        if not self.effort_scale and not self.effort_offset:
            return recorded
        given: list[dict[str | None, float]] = [
            {None: 1.0, **dict(self.effort_scale)},
            {None: 0.0, **dict(self.effort_offset)},
        ]
        scale, offset = (np.array([values.get(joint, values[None]) for joint in joints]) for values in given)
        return recorded * scale + offset

    def check(self, robot: str, joints: Sequence[str]) -> None:
        """Raise BagError if an effort is given for a joint that the robot does not have."""
        for option, given in (("--effort-scale", self.effort_scale), ("--effort-offset", self.effort_offset)):
            for joint, _ in given:
                if joint is not None and joint not in joints:
                    raise BagError(f"{option}: robot {robot} has no joint {joint!r}; {hint(joint, joints)}")

    def as_json(self) -> dict[str, Any]:
        """Return the conventions that are not the defaults, ready for JSON."""
        given = {"rename": self.rename, "effort_scale": self.effort_scale, "effort_offset": self.effort_offset}
        return {name: [list(pair) for pair in pairs] for name, pairs in given.items() if pairs}


DEFAULT = Conventions()
"""Names and efforts are the robot's."""
