# SPDX-License-Identifier: Apache-2.0
"""Sampled motions with time derivatives, interpolated, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..exceptions import StateError
from ..robot import Robot
from ..spelling import listed
from ..states import STATE_NAMES, joint_states
from .number_files import archive, read_table

# Largest error of a Taylor step from sample to sample, relative to the largest change within a step.
_LARGEST_MISS = 0.05


class SampledMotion:
    """q … qdddd between samples, each by a linear blend of the Taylor polynomials of both neighbours.

    Every derivative is continuous, exact at the samples, and free of rounding amplified from another. Between samples a
    time h apart the error of the k-th derivative is of order h^(5 - k), of the fourth h².

    Attributes:
        t: times (T,) of the samples, s.
    """

    def __init__(self, t: ArrayLike, states: ArrayLike) -> None:
        """Take times (T,), s, and q … qdddd (5, T, n), rad or m and per s, s², s³, s⁴.

        Raises:
            StateError: shapes are wrong, numbers are not finite, times do not increase, or the derivatives are not
                those of q.
        """
        self.t = np.asarray(t, dtype=float)
        rows = np.asarray(states, dtype=float)
        if self.t.ndim != 1 or len(self.t) < 2 or rows.ndim != 3 or rows.shape[:2] != (len(STATE_NAMES), len(self.t)):
            raise StateError(f"t must have shape (T,), T > 1, and the states (5, T, n); {self.t.shape}, {rows.shape}")
        self._states = np.stack(joint_states(rows.shape[2], *rows))
        if not np.all(np.isfinite(self.t)) or np.any(np.diff(self.t) <= 0):
            raise StateError("t must increase from sample to sample")
        step = np.diff(self.t)[:, np.newaxis]
        for k in range(len(STATE_NAMES) - 1):
            change = np.diff(self._states[k], axis=0)
            miss = np.abs(_taylor(self._states[:, :-1], k, step) - self._states[k, :-1] - change)
            # A rough motion misses in some steps, a wrong column in most.
            largest = np.max(np.abs(change), initial=1e-12)
            if np.median(np.max(miss, axis=1)) > _LARGEST_MISS * largest:
                raise StateError(f"{STATE_NAMES[k + 1]} is not the time derivative of {STATE_NAMES[k]}")

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Derivatives as in :class:`.Trajectory`; outside the samples those of the polynomial of the nearest one."""
        at = np.asarray(t, dtype=float)
        i = np.clip(np.searchsorted(self.t, at, side="right") - 1, 0, len(self.t) - 2)
        before, after = (at - self.t[i])[..., np.newaxis], (at - self.t[i + 1])[..., np.newaxis]
        share = np.clip(before / (before - after), 0.0, 1.0)
        first, second = self._states[:, i], self._states[:, i + 1]
        return tuple(
            (1 - share) * _taylor(first, k, before) + share * _taylor(second, k, after) for k in range(order + 1)
        )


def _taylor(states: Array, order: int, step: Array) -> Array:
    """Derivative of this order a time step from the sample."""
    value = np.zeros_like(states[0])
    for k in range(len(states) - 1, order - 1, -1):
        value = states[k] + value * step / (k - order + 1)
    return value


def read_motion(path: Path, robot: Robot, rate: float | None = None) -> SampledMotion:
    """Read a motion from a .npz file with arrays t (T,) and q, qd, qdd, qddd, qdddd (T, n), or from a .csv file.

    Joints in a .npz file are in the order of its array joint_names (n,) if it has one, else in the robot's order. The
    first line of a .csv file names its columns: t and q.NAME … qdddd.NAME for each joint's name, in any order.

    Args:
        path: of the file.
        robot: whose joints move.
        rate: Hz, of the samples of a .npz file without t, such as setpoints for the player.

    Raises:
        StateError: an entry is missing, joints are those of another robot, or the numbers are not a motion.
        OSError: the file cannot be read.
    """
    if path.exists() and not path.is_file():
        raise StateError(f"{path}: cannot be read: not a file")  # opening a pipe would wait for its writer
    try:
        t, states = _from_npz(path, robot, rate) if path.suffix == ".npz" else _from_csv(path, robot)
    except ValueError as error:
        raise StateError(f"{path}: {error}") from None
    if states.ndim != 3 or states.shape[2] != robot.n:
        raise StateError(f"{path}: q must have shape (T, {robot.n}), has {states.shape[1:]}")
    try:
        return SampledMotion(t, states)
    except StateError as error:
        raise StateError(f"{path}: {error}") from None


def _from_npz(path: Path, robot: Robot, rate: float | None) -> tuple[Array, Array]:
    with archive(path) as data:
        wanted = (*(("t",) if rate is None else ()), *STATE_NAMES)
        missing = [name for name in wanted if name not in data.files]
        if missing == ["t"]:
            raise ValueError(f"has no t; it has {listed(data.files)}; name the rate of its samples, --rate HZ")
        if missing:
            raise ValueError(
                f"has no {', '.join(missing)}; it has {listed(data.files) or 'nothing'}, and must have the arrays "
                f"{', '.join(wanted)}, see docs/elastic_joints.md"
            )
        states = np.stack([_numbers(data, name, 2) for name in STATE_NAMES])
        if "joint_names" in data.files:
            order = _order(data["joint_names"], robot)
            # The caller refuses other shapes.
            states = states[:, :, order] if states.shape[2:] == (robot.n,) else states
        if "t" not in data.files:
            assert rate is not None
            return np.arange(states.shape[1]) / rate, states
        return _numbers(data, "t", 1), states


def _numbers(data: Any, name: str, dimensions: int) -> Array:
    """An array of a file; ValueError unless it holds real numbers in so many dimensions."""
    values = data[name]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu" or values.ndim != dimensions:
        shape = "(T,)" if dimensions == 1 else "(T, n)"
        kind = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else "none"
        raise ValueError(f"{name} must be an array {shape} of real numbers, is {kind}")
    return np.asarray(values, dtype=float)


def _order(joint_names: NDArray[Any], robot: Robot) -> list[int]:
    """Indices of the robot's joints in a file; raises ValueError if it has other joints."""
    names = [str(name) for name in joint_names.ravel()]
    if sorted(names) != sorted(robot.joint_names):
        raise ValueError(f"has the joints {listed(names)}; robot {robot.name} has {listed(robot.joint_names)}")
    return [names.index(name) for name in robot.joint_names]


def _from_csv(path: Path, robot: Robot) -> tuple[Array, Array]:
    names, table = read_table(path)
    wanted = ["t", *(f"{state}.{joint}" for state in STATE_NAMES for joint in robot.joint_names)]
    missing = [name for name in wanted if name not in (names or ())]
    if names is None or missing:
        raise ValueError(f"has no column {missing[0]}; it needs t, q.JOINT … qdddd.JOINT and has {listed(names or ())}")
    ordered = table[:, [names.index(name) for name in wanted]]
    return ordered[:, 0], np.moveaxis(ordered[:, 1:].reshape(len(ordered), len(STATE_NAMES), robot.n), 1, 0)
