# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics in compiled C: the iteration around the poses and Jacobians of one robot's tools."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from ..arrays import AnyArray, Array
from ..robot import Frame, Robot
from .c_functions import csrc, filled
from .compiler import compiled
from .emit_c import c_source
from .kinematic_programs import poses_and_jacobians
from .native import in_threads, loaded
from .program import c_name
from .recipe import Recipe, kernel_fingerprint

# Iteration constants, close to the best of nine choices for 2,000 random poses of panda, ur5e and iiwa.
_CONSTANTS = {"damping": "0.02", "longest": "1.0", "patience": "3"}

# Smallest number of targets for which a further thread saves time.
_TARGETS_PER_THREAD = 16

ANY, PREFERRED, MANIPULABLE = range(3)
"""Objectives among the solutions."""

REASONS = ("solved", "stuck", "iterations", "no pose")
"""Reasons for the end of the last attempt: solved, minimum of the error, maximum iterations, or not started."""

NO_POSE = REASONS.index("no pose")


class SolverSettings(NamedTuple):
    """Arrays and numbers of a task. Joint vectors have n entries, weights 6 for each tool."""

    lower: Array
    upper: Array
    period: Array
    weights: Array
    angle: float
    distance: float
    length: float
    iterations: int
    attempts: int
    objective: int
    starts: Array
    preferred: Array
    pull: Array


_C_TYPES: dict[Any, Any] = {Array: ctypes.c_void_p, float: ctypes.c_double, int: ctypes.c_int32}


class SolverTask(ctypes.Structure):
    """Settings in C: ``ik_task`` of csrc/inverse_kinematics.c.in."""

    _fields_ = (
        *((name, _C_TYPES[kind]) for name, kind in get_type_hints(SolverSettings).items()),
        *(("iterates", ctypes.c_void_p), ("count", ctypes.c_void_p), ("most", ctypes.c_int64)),
    )


def task_of(settings: SolverSettings) -> SolverTask:
    """Convert settings to the C structure."""
    values = settings._asdict()
    arrays = {name: np.ascontiguousarray(x, dtype=float) for name, x in values.items() if np.ndim(x)}
    task = SolverTask(**{**values, **{name: x.ctypes.data for name, x in arrays.items()}})
    task.arrays = arrays  # referenced by the structure
    return task


def traced_task(settings: SolverSettings, most: int) -> tuple[SolverTask, Array, AnyArray]:
    """Task of one target that records iterates; with their array (most, n) and their number (1,)."""
    task, iterates, count = task_of(settings), np.empty((most, len(settings.lower))), np.zeros(1, dtype=np.int64)
    task.iterates, task.count, task.most = iterates.ctypes.data, count.ctypes.data, most
    return task, iterates, count


class Solved(NamedTuple):
    """Results of N targets: q (N, n), largest angle and distance (N, 2), and counts and reasons (N,)."""

    q: Array
    residuals: Array
    iterations: AnyArray
    attempts: AnyArray
    reasons: AnyArray


class NativeSolver:
    """Solver of the inverse kinematics of some tools of one robot, compiled at first use and then from the cache.

    Raises:
        KernelError: the solver cannot be compiled or loaded.
    """

    def __init__(self, robot: Robot, tools: Sequence[Frame]) -> None:
        recipe = poses_and_jacobians(tools)
        whole = Recipe("inverse_kinematics", recipe.build, (*recipe.details, *_CONSTANTS.values()))

        def source() -> str:
            sizes = {"n": str(robot.n), "tools": str(len(tools)), "name": c_name(recipe.name)}
            return c_source(recipe(robot)) + filled(csrc("inverse_kinematics.c.in"), **sizes, **_CONSTANTS)

        with compiled(source, kernel_fingerprint(robot, whole), ["-lm"]) as path:
            (self._solve,) = loaded(path, "eom_inverse_kinematics")
        self._solve.restype, self._solve.argtypes = None, [ctypes.c_size_t, *[ctypes.c_void_p] * 8]

    def __call__(self, targets: Array, starts: Array, task: SolverTask, *, near_starts: bool = False) -> Solved:
        """Solve for N targets (N, tools, 4, 4), from starts (N, n), which may double as preferred configurations."""
        count, address = len(starts), ctypes.addressof(task)
        targets, starts = (np.ascontiguousarray(x, dtype=float) for x in (targets, starts))
        q = starts.copy()
        residuals = np.empty((count, 2))
        counts = np.empty((3, count), dtype=np.int32)

        def run(start: int, stop: int) -> None:
            rows = (targets[start:], starts[start:], q[start:], residuals[start:], *counts[:, start:])
            # Faster than x.ctypes.data.
            target, near, *others = (x.__array_interface__["data"][0] for x in rows)
            self._solve(stop - start, address, target, near if near_starts else None, *others)

        in_threads(count, _TARGETS_PER_THREAD, run)
        return Solved(q, residuals, *counts)
