# SPDX-License-Identifier: Apache-2.0
"""States of an arm to show: at rest, or along a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...arrays import AnyArray, Array
from ...bags import Bag, BagError
from ...bags.bag import METADATA, is_storage
from ...bags.types import JOINT_STATE
from ...elastic import ElasticArm
from ..drive_numbers import is_of_motors, joints_of_motors
from ..identify.read import TABLES, Source
from ..identify.sides import read_sides
from ..replay.sources import Sampling
from ..report.findings import interpolated
from ..report.read import read_records
from ..report.record import Record, Stream
from ..robot_options import RobotOptions


class ArmState(NamedTuple):
    """State of the n joints of an arm, or N of them.

    Attributes:
        q, qd: joint variables and their rates (n,) or (N, n), rad or m, and per s.
        tau: joint efforts (n,) or (N, n), N m or N.
        deflection: of the springs, motor minus link (n,) or (N, n), rad or m; zero at rigid joints, and the mean of
            both motors of a pair.
    """

    q: Array
    qd: Array
    tau: Array
    deflection: Array


class PlayedMotion(NamedTuple):
    """A recording to play.

    Attributes:
        name: of the recording.
        t: (N,) increasing, from 0, s.
        states: at these times.
        notes: one line each.
    """

    name: str
    t: Array
    states: ArmState
    notes: tuple[str, ...] = ()

    def at(self, t: float) -> ArmState:
        """The state at a time, interpolated linearly; the first or last one beyond the ends."""
        after = int(np.clip(np.searchsorted(self.t, t), 1, len(self.t) - 1)) if len(self.t) > 1 else 0
        before = max(after - 1, 0)
        span = self.t[after] - self.t[before]
        share = min(max((t - self.t[before]) / span, 0.0), 1.0) if span else 0.0
        return ArmState(*((1 - share) * x[before] + share * x[after] for x in self.states))


def at_rest(arm: ElasticArm, q: Array) -> ArmState:
    """The arm at rest at q (n,) or (N, n): its efforts hold it against gravity."""
    zero = np.zeros_like(q)
    tau = arm.dynamics.effort(q, zero, zero)
    return ArmState(q, zero, tau, _spring_deflections(arm, tau))


def read_motion(path: Path, arm: ElasticArm, sampling: Sampling, options: RobotOptions) -> PlayedMotion:
    """Read a recording of an arm.

    Deflections are those of recorded motor positions; without these, of commanded ones, or of the efforts, which are
    recorded, computed from the motion as by ``report``, or those at rest.

    Args:
        path: of a bag, or of a .csv, .parquet or .npz file as for ``identify``.
        arm: a joint of it that was not recorded stays at zero.
        sampling: of trajectories and measured positions, to compute efforts.
        options: the part of the robot that was loaded.

    Raises:
        BagError: the bag cannot be read, or has no motion of this robot.
        IdentificationError: a table lacks columns, or nothing of the robot was recorded.
        OSError: a file cannot be read.
    """
    _check_playable(path)
    # Two motors of a joint have names of their own, which only records know.
    if path.suffix in TABLES or (_has_both_sides(path) and not arm.paired.any()):
        source = Source(conventions=sampling.conventions)
        sides = read_sides(path, arm.robot, source, links_alone=bool(arm.paired.any()))
        links, motors = sides.links, sides.motors
        if links is None:
            assert motors is not None  # one of them is there
            return _motion(arm, motors.name, motors.t, (None, None, None, motors.q), motors.notes)
        theta = None if motors is None else interpolated(motors.t, motors.q, links.t)
        return _motion(arm, links.name, links.t, (links.q, links.qd, links.tau, theta), links.notes)
    records = read_records(path, arm.robot, sampling, options)
    fitting = [record for record in records if record.robot is not None]
    if not fitting:
        joints = ", ".join(records[0].joints) or "no joints"
        raise BagError(
            f"{path}: robot {arm.robot.name} has none of the joints of this recording, which has {joints}; name "
            "another, or rename them, --rename PATTERN=REPLACEMENT"
        )
    return _of_record(fitting[0], arm)


def _check_playable(path: Path) -> None:
    """Refuse files that are neither bags nor tables, and folders of results, with the tables in these."""
    folder = path if path.is_dir() else path.parent
    if path.suffix in TABLES or not path.exists() or is_storage(path):
        return
    if path.is_dir() and ((path / METADATA).exists() or any(map(is_storage, path.iterdir()))):
        return
    tables = [each.name for each in sorted(folder.iterdir()) if each.suffix in TABLES]
    there = f"; {folder} has {', '.join(tables)}" if tables else ""
    raise BagError(f"{path}: is neither a bag nor a table ({', '.join(TABLES)}){there}")


def _has_both_sides(path: Path) -> bool:
    """Whether a bag has measured motors, and at most one topic of links, so that it is clear which belong together."""
    with Bag(path) as bag:
        states = [topic.name for topic in bag.topics if topic.type == JOINT_STATE]
        links = [topic.name for topic in bag.topics if topic.type == JOINT_STATE and not is_of_motors(topic)]
    return sum(name.endswith("motor_states") for name in states) == 1 and len(links) <= 1


def _of_record(record: Record, arm: ElasticArm) -> PlayedMotion:
    measured, planned, motors = record.measured, record.setpoint, record.motors
    links = measured if measured is not None and "position" in measured.values else planned
    clock = links or motors
    assert clock is not None  # a record has streams
    t, joints = record.t(clock), arm.robot.joint_names

    def values(stream: Stream | None, field: str, names: tuple[str, ...] = joints) -> Array:
        """A field (N, number of names) at the times t; NaN where unknown."""
        if stream is None or field not in stream.values:
            return np.full((len(t), len(names)), np.nan)
        own = [stream.values[field][:, stream.names.index(x)] if x in stream.names else None for x in names]
        columns = [np.full(len(stream), np.nan) if x is None else x for x in own]
        return interpolated(record.t(stream), np.stack(columns, axis=1), t)

    tau = values(measured, "effort")
    tau = np.where(np.isfinite(tau), tau, values(record.command, "effort"))
    theta = joints_of_motors(arm, values(motors, "motor_position", arm.motor_names))
    notes = (*record.notes, *filter(None, [record.computed_note]))
    if links is None:
        return _motion(arm, record.name, t, (None, None, tau, theta), notes)
    q = values(links, "position")
    if missing := [name for name in joints if name not in links.names]:
        notes += (f"not recorded, and shown at 0: {', '.join(missing)}",)
        q[:, [joints.index(name) for name in missing]] = 0.0
    if links is not planned:  # commanded motors belong to commanded links
        theta += q - values(planned, "position")
    return _motion(arm, record.name, t, (q, values(links, "velocity"), tau, theta), notes)


def _motion(
    arm: ElasticArm,
    name: str,
    t: Array,
    given: Sequence[Array | None],
    notes: tuple[str, ...],
) -> PlayedMotion:
    """A motion of q, qd, tau and theta (N, n), each None or NaN where unknown; motors on the joint side."""
    nothing = np.full((len(t), arm.robot.n), np.nan)
    arrays = [nothing if x is None else x for x in given]
    q, qd, tau, theta = arrays
    links_known = given[0] is not None
    known = t > np.concatenate([[-np.inf], np.maximum.accumulate(t)[:-1]])
    known &= np.isfinite(q if links_known else theta).all(axis=1)
    if not known.any():
        raise BagError(f"{name}: no sample has the positions of all joints of {arm.robot.name}")
    t, q, qd, tau, theta = (x[known] for x in (t, *arrays))
    tau = np.where(np.isfinite(tau), tau, at_rest(arm, q if links_known else theta).tau)
    deflection = _spring_deflections(arm, tau)
    if links_known:
        deflection = np.where(np.isfinite(theta) & elastic_joints(arm), theta - q, deflection)
    else:
        q = theta - deflection
    slope = np.gradient(q, t, axis=0) if len(t) > 1 else np.zeros_like(q)
    return PlayedMotion(name, t - t[0], ArmState(q, np.where(np.isfinite(qd), qd, slope), tau, deflection), notes)


def elastic_joints(arm: ElasticArm) -> AnyArray:
    """Whether each joint has a spring (n,)."""
    elastic = ~np.asarray(arm.rigid)
    if arm.coupled is not None:
        elastic[list(arm.coupled[0])] = True
    return elastic


def _spring_deflections(arm: ElasticArm, tau: Array) -> Array:
    """Deflections (…, n) under constant efforts, of pairs the mean; zero where no deflection has such an effort."""
    zero, springs = np.zeros_like(tau), arm.spring_set
    delta = springs.functions("deflections", tau, zero, zero, *springs.commands((), None, tau.shape[:-1]))[0]
    means = [np.mean(delta[..., arm.motor_joint == k], axis=-1) for k in range(arm.robot.n)]
    return np.nan_to_num(np.stack(means, axis=-1))
