# SPDX-License-Identifier: Apache-2.0
"""Positions of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...bags import BagError
from ...bags.bag import METADATA, is_storage
from ...robot import Robot
from ..identify.read import TABLES, read_recording
from ..recording_options import Sampling, Source
from ..report.read import read_records
from ..robot_options import RobotOptions


class PlayedMotion(NamedTuple):
    """A recording to play: increasing times (N,) from 0, s, positions (N, n) at them, and notes, one line each."""

    name: str
    t: Array
    q: Array
    notes: tuple[str, ...] = ()

    def at(self, t: float) -> Array:
        """Positions (n,) at a time, interpolated linearly; the first or last ones beyond the ends."""
        return np.array([np.interp(t, self.t, column) for column in self.q.T])


def read_motion(path: Path, robot: Robot, sampling: Sampling, options: RobotOptions) -> PlayedMotion:
    """Read measured positions, else those of setpoints, from a bag, or from a table as for ``identify``.

    A joint that was not recorded stays at zero. Raises BagError, IdentificationError or OSError.
    """
    if path.suffix in TABLES:
        links = read_recording(path, robot, Source(conventions=sampling.conventions))
        return _known(robot, PlayedMotion(links.name, links.t, links.q, links.notes))
    _check_playable(path)
    records = read_records(path, robot, sampling, options)
    record = next((each for each in records if each.robot is not None), None)
    if record is None:
        has = f"has none of the joints of this recording, which has {', '.join(records[0].joints) or 'no joints'}"
        raise BagError(f"{path}: robot {robot.name} {has}; name another, or rename them, --rename PATTERN=REPLACEMENT")
    stream = record.measured if record.measured and "position" in record.measured.values else record.setpoint
    if stream is None:
        raise BagError(f"{path}: has no positions of links; play the recording that it was computed from")
    q = np.zeros((len(stream), robot.n))
    missing = [name for name in robot.joint_names if name not in stream.names]
    for k, name in enumerate(robot.joint_names):
        if name in stream.names:
            q[:, k] = stream.values["position"][:, stream.names.index(name)]
    notes = (*record.notes, *([f"not recorded, and shown at 0: {', '.join(missing)}"] if missing else []))
    return _known(robot, PlayedMotion(record.name, record.t(stream), q, notes))


def _known(robot: Robot, motion: PlayedMotion) -> PlayedMotion:
    """The samples in order of time whose positions are all known."""
    known = motion.t > np.concatenate([[-np.inf], np.maximum.accumulate(motion.t)[:-1]])
    known &= np.isfinite(motion.q).all(axis=1)
    if not known.any():
        raise BagError(f"{motion.name}: no sample has the positions of all joints of {robot.name}")
    t = motion.t[known]
    return motion._replace(t=t - t[0], q=motion.q[known])


def _check_playable(path: Path) -> None:
    """Refuse files that are no bags, and folders of results, with the tables in these."""
    if not path.exists() or is_storage(path):
        return
    if path.is_dir() and ((path / METADATA).exists() or any(map(is_storage, path.iterdir()))):
        return
    folder = path if path.is_dir() else path.parent
    tables = [each.name for each in sorted(folder.iterdir()) if each.suffix in TABLES]
    there = f"; {folder} has {', '.join(tables)}" if tables else ""
    raise BagError(f"{path}: is neither a bag nor a table ({', '.join(TABLES)}){there}")
