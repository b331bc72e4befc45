# SPDX-License-Identifier: Apache-2.0
"""Joint positions as they were recorded, made continuous and complete.

Positions of continuous joints are often folded to one turn, and steps of 2π are undone. Joints of separate publishers
come in separate messages: their values are interpolated at the stamps of one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import CubicSpline

from ..arrays import Array
from ..identification import IdentificationError
from ..robot import Robot
from ..spelling import listed
from .streams import Stream

_NEAR = 0.1  # relative deviation from a turn of a range of folded positions, and of steps between others
_LARGEST = 1e9  # larger positions come from damaged messages
_DEGREES = 100.0  # range beyond which folded positions are in degrees
_FIRST, _FAR = 10, 0.02  # most messages of zeros at the start, and the least step from there, rad or m
_PAUSE, _PAUSE_STEPS = 0.05, 8  # longest step over which values are interpolated: s, and usual steps

COMPLETE = 0.5
"""Share of complete messages from which on incomplete ones are damaged, not of separate publishers."""


def without_turns(
    robot: Robot, positions: Array, names: Sequence[str], unit: str = "rad"
) -> tuple[Array, dict[str, int]]:
    """Undo steps of whole turns in positions (N, n) of continuous joints; return also the number of steps by joint.

    Args:
        robot: whose joints may be continuous.
        positions: rad; NaN where a position is missing.
        names: of the n columns.
        unit: ``rad`` or ``deg``, or ``auto``: degrees where positions range over more than 100.
    """
    result, steps = positions, dict[str, int]()
    for k, name in enumerate(names):
        known = np.flatnonzero(np.abs(positions[:, k]) < _LARGEST)
        if name not in robot.continuous_names or len(known) < 2:
            continue
        x = positions[known, k]
        turn = 360.0 if unit == "deg" or (unit == "auto" and np.ptp(x) > _DEGREES) else 2 * np.pi
        jumps = np.diff(x)[np.abs(np.diff(x)) > turn / 2] / turn
        if len(jumps) and (np.ptp(x) < (1 + _NEAR) * turn or np.all(np.abs(jumps - np.round(jumps)) < _NEAR)):
            result = result.copy() if result is positions else result
            result[known, k], steps[name] = np.unwrap(x, period=turn), len(jumps)
    return result, steps


def without_turns_between(robot: Robot, waypoints: Array, names: Sequence[str]) -> tuple[Array, dict[str, int]]:
    """As :func:`without_turns` for waypoints (K, n), which may be more than half a turn apart unless all are folded."""
    folded = np.all(np.abs(waypoints) <= np.pi * (1 + 1e-3), axis=0)
    result, steps = without_turns(robot, np.where(folded, waypoints, np.nan), names)
    return np.where(folded, result, waypoints), steps


def turns_note(steps: Mapping[str, int]) -> list[str]:
    """A note on steps that were undone, of no joint or more."""
    joints = ", ".join(f"{count:,} of {name}" for name, count in steps.items())
    return [f"positions of continuous joints were folded; steps of 2π are undone: {joints}"] if steps else []


def on_one_clock(stream: Stream, joints: Sequence[str]) -> tuple[Stream, list[str]]:
    """The messages that have all of some joints; where these come in separate messages, interpolated at one's stamps.

    First messages of zeros, of a driver that has not measured yet, are left out. Returns also notes.
    Raises IdentificationError if separate messages have no time in common.
    """
    present = [name for name in joints if name in stream.names]
    columns = [stream.names.index(name) for name in present]
    if "position" not in stream.values or not columns or not len(stream):
        return stream, []
    known = np.isfinite(stream.values["position"][:, columns])
    of_others = ~known.any(axis=1) & np.isnan(stream.values["position"][:, columns]).all(axis=1)
    of_others &= np.isfinite(stream.values["position"]).any(axis=1)
    rows, known = stream[~of_others], known[~of_others]
    first = int(np.argmax(np.any(rows.values["position"][:, columns] != 0, axis=1)))
    notes = []
    if 0 < first <= _FIRST and np.nanmax(np.abs(rows.values["position"][first, columns])) > _FAR:
        notes = [f"all positions of the first messages are zero, {first:,}, far from the next; left out"]
        rows, known = rows[first:], known[first:]
    if not known.any(axis=0).all() or known.all(axis=1).sum() > COMPLETE * len(known):
        return rows, notes
    order = np.argsort(rows.stamp, kind="stable")
    rows, known = rows[order], known[order]
    # Joints of one publisher are in the same messages.
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(known.T):
        groups.setdefault(column.tobytes(), []).append(k)
    clock = max(groups.values(), key=lambda group: (len(group), known[:, group[0]].sum()))
    at = np.flatnonzero(known[:, clock[0]] & np.append(True, np.diff(rows.stamp) > 0))
    t, times = rows.seconds(int(rows.stamp[0])), rows.seconds(int(rows.stamp[0]))[at]
    values = {field: x[at].copy() for field, x in rows.values.items()}
    for group in groups.values():
        if group is clock:
            continue
        of_group = [columns[k] for k in group]
        for field, x in rows.values.items():
            for column in of_group:
                values[field][:, column] = _at(times, t, x[:, column])
    complete = np.isfinite(values["position"][:, columns]).all(axis=1)
    named = "; ".join(
        f"{known[:, group[0]].sum():,} of {listed(present[k] for k in group)}" for group in groups.values()
    )
    if not complete.any():
        raise IdentificationError(
            f"{stream.topic}: joints come in separate messages that have no time in common, {named}: record them at "
            "once, on one clock"
        )
    note = f"joints come in separate messages, {named}: merged at the times of {listed(present[k] for k in clock)}"
    merged = replace(rows[at], values=values)
    return merged[complete], [*notes, note]


def _at(times: Array, t: Array, values: Array) -> Array:
    """Values (N,) at other times, s; NaN where they have a pause."""
    known = np.flatnonzero(np.isfinite(values))
    known = known[np.append(True, np.diff(t[known]) > 0)] if len(known) else known
    if len(known) < 4:
        return np.full(len(times), np.nan)
    at, steps = t[known], np.diff(t[known])
    right = np.searchsorted(at, times).clip(1, len(at) - 1)
    near = (times >= at[0]) & (times <= at[-1]) & (steps[right - 1] <= max(_PAUSE, _PAUSE_STEPS * np.median(steps)))
    return np.where(near, CubicSpline(at, values[known])(times), np.nan)
