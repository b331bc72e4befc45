# SPDX-License-Identifier: Apache-2.0
"""Notes of a fit: joints without motion or effort, and parameters that are not identifiable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..robot import Robot
from .exceptions import IdentificationError
from .filtering import REST
from .recording import Recording
from .regressor import Regressor

# Base parameters that are named.
_NAMED = 6


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
