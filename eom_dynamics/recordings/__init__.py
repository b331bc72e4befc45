# SPDX-License-Identifier: Apache-2.0
"""Recordings and motions from bags and tables, as arrays; ``docs/architecture.md`` has the steps.

Options of recordings: conventions, sampling, and the sources of links and motors in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix

import numpy as np

from ..arguments import option
from ..arrays import Array
from ..exceptions import EomDynamicsError
from ..spelling import duplicates, hint, listed
from .columns import Column, column


def renaming(text: str) -> tuple[str, str]:
    """Pattern and replacement of ``PATTERN=REPLACEMENT``; raises ValueError for another text."""
    pattern, assigned, replacement = text.rpartition("=")
    if not (pattern and assigned):
        raise ValueError(f"must be PATTERN=REPLACEMENT, is {text!r}")
    try:
        # The check is here, because a missing group of a template is found by a match only.
        re.sub(f"{pattern}|", replacement, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"must be a regular expression and its replacement, is {text!r}: {error}") from None
    return pattern, replacement


def renaming_to(names: Sequence[str], recorded: Sequence[str]) -> str:
    """Return the remedy if recorded names lack joints of a robot: patterns, if prefixes differ; otherwise ""."""
    if not recorded or set(names) <= set(recorded):
        return ""
    if len(recorded) < len(names):
        counts = f"the robot has {len(names)} joints, the recording {len(recorded)}"
        return f"; name the recorded robot ({counts}), or rename the joints: --rename PATTERN=REPLACEMENT"
    ours, theirs = commonprefix(names), commonprefix(recorded)  # noqa: RUF071 (by characters, as is wanted)
    ends = {name[len(ours) :] for name in names}
    fits = len(recorded) > 1 and ends.issuperset(name[len(theirs) :] for name in recorded)
    fits = fits and re.fullmatch(r"[\w/-]*", theirs + ours) is not None  # else to be escaped
    option = f"--rename '^{theirs}={ours}'" if fits else "--rename PATTERN=REPLACEMENT"
    return f"; name another robot, or rename the joints: {option}"


def check_joints(flag: str, values: Iterable[tuple[str | None, float]], robot: str, joints: Sequence[str]) -> None:
    """Raise EomDynamicsError if an option has a value for a joint that the robot does not have."""
    for joint, _ in values:
        if joint is not None and joint not in joints:
            raise EomDynamicsError(f"{flag}: robot {robot} has no joint {joint!r}; {hint(joint, joints)}")


@dataclass(frozen=True)
class Conventions:
    """Conventions of the recording, by default the same as of the robot.

    Attributes:
        rename: regular expression and its replacement in the names of joints, such as ^left_= to remove a prefix;
            applied in this order.
        effort_scale: effort per recorded unit, such as N m/A, for all joints or by joint name.
        effort_offset: effort to add after scaling, N m or N, for all joints or by joint name.
    """

    rename: tuple[tuple[str, str], ...] = option((), metavar="PATTERN=REPLACEMENT", parse=renaming)
    effort_scale: tuple[tuple[str | None, float], ...] = option((), metavar="[JOINT=]X")
    effort_offset: tuple[tuple[str | None, float], ...] = option((), metavar="[JOINT=]X")

    def names(self, recorded: Iterable[str]) -> list[str]:
        """Return the robot's names for recorded names; raises EomDynamicsError if two joints get one name."""
        before = names = list(recorded)
        for pattern, replacement in self.rename:
            names = [re.sub(pattern, replacement, name) for name in names]
        pairs = dict(zip(before, names, strict=True)).items()
        if merged := duplicates(name for _, name in pairs):
            joints = listed(name for name, renamed in pairs if renamed == merged[0])
            raise EomDynamicsError(
                f"--rename: {joints} would all be {merged[0]!r}; give patterns that match one of them"
            )
        return names

    @property
    def names_alone(self) -> Conventions:
        """Conventions of names, with efforts as recorded."""
        return Conventions(self.rename)

    def efforts(self, joints: Sequence[str], recorded: Array) -> Array:
        """Return efforts (N, n) of the robot's joints from recorded efforts, N m or N."""
        if not self.effort_scale and not self.effort_offset:
            return recorded

        def of(values: Iterable[tuple[str | None, float]], default: float) -> Array:
            by_joint = dict(values)
            return np.array([by_joint.get(joint, by_joint.get(None, default)) for joint in joints])

        return recorded * of(self.effort_scale, 1.0) + of(self.effort_offset, 0.0)

    def check(self, robot: str, joints: Sequence[str]) -> None:
        """Raise EomDynamicsError if an effort is given for a joint that the robot does not have."""
        for flag, values in (("--effort-scale", self.effort_scale), ("--effort-offset", self.effort_offset)):
            check_joints(flag, values, robot, joints)


DEFAULT = Conventions()
"""Names and efforts are the robot's."""


@dataclass(frozen=True)
class Sampling:
    """Sampling of motions that are not setpoints.

    Attributes:
        cutoff: cut-off frequency of the fit to measured positions, Hz.
        rate: sampling rate of a JointTrajectory, Hz.
        conventions: conventions of the recording.
    """

    cutoff: float = option(5.0, rule="positive", metavar="HZ")
    rate: float = option(1000.0, rule="positive", metavar="HZ")
    conventions: Conventions = DEFAULT


@dataclass(frozen=True)
class Source:
    """Recordings.

    Attributes:
        topic: topic of the joint states, if a bag has several.
        effort_topic: topic of the efforts, such as motor_states or feedforward; default: the topic of the joint states.
        position_unit: unit of recorded positions; default: degrees if positions are within the robot's limits only
            then.
        effort_delay: delay of recorded efforts, s.
        columns: columns of a table, such as 'position.{joint}=q{k}:deg' for q0, q1, …, with {k+1} for q1, q2, …; or
            time=NAME.
        locked: positions, rad or m, of joints of the robot that were not recorded, since they are locked, of all or of
            one; without it, recordings must have all joints.
        conventions: names of joints, and units of efforts.
        side: ``links``, or by its name a topic of motors; ``motors``, in the units of their drives; or their
            ``currents``, with efforts in A.
    """

    topic: str | None = option(metavar="NAME")
    effort_topic: str | None = option(metavar="NAME")
    position_unit: str = option("auto", choices=("auto", "rad", "deg"))
    effort_delay: float = option(0.0, metavar="S")
    columns: tuple[Column, ...] = option((), flag="--column", metavar="QUANTITY=COLUMN[:UNIT]", parse=column)
    locked: tuple[tuple[str | None, float], ...] = option((), metavar="[JOINT=]X")
    conventions: Conventions = DEFAULT
    side: str = "links"


@dataclass(frozen=True)
class MotorSource:
    """Recordings of motors.

    Attributes:
        topic: joint states of the motors; default: the topic with a name that ends in motor_states. Tables have columns
            motor_position.NAME, motor_effort.NAME and current.NAME.
        effort_topic: topic of the motor efforts, such as feedforward; default: the topic of the motors.
        current_topic: joint states with motor currents as efforts, A: identifies k_t.
        unit: unit of motor positions: on the link side of the gears (rad, deg), or of the shafts, with their torques;
            default: the unit for which motors move as far as links.
        delay: delay of motor efforts and currents, s: half a step if they are means of the last step, minus half a step
            if a drive starts to apply them; default: 0, and unknown for the delay of commands.
    """

    topic: str | None = option(flag="--motor-topic", metavar="NAME")
    effort_topic: str | None = option(flag="--motor-effort-topic", metavar="NAME")
    current_topic: str | None = option(metavar="NAME")
    unit: str = option("auto", flag="--motor-unit", choices=("auto", "rad", "deg", "shaft"))
    delay: float | None = option(flag="--motor-delay", metavar="S")
