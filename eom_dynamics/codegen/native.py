# SPDX-License-Identifier: Apache-2.0
"""Kernels and inverse kinematics in compiled C, called without copies and without the global interpreter lock."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from ..arguments import all_finite
from ..arrays import AnyArray, Array
from ..exceptions import KernelError
from ..robot import Frame, Robot
from .c_functions import csrc, filled
from .cache import digest
from .compiler import compiled
from .emit_c import PARTS, c_source
from .program import c_name
from .programs import poses_and_jacobians
from .recipe import Recipe, kernel_fingerprint

T = TypeVar("T")

STATES_PER_THREAD = 4096
"""Smallest number of states for which a further thread saves time."""


class NativeKernel:
    """Program of one robot, compiled at first use and then loaded from the cache.

    Raises:
        KernelError: the kernel cannot be compiled or loaded.
    """

    def __init__(self, robot: Robot | None, recipe: Recipe) -> None:
        name = c_name(recipe.name)
        source, key = (lambda: c_source(recipe(robot))), kernel_fingerprint(robot, recipe)
        with compiled(source, key, parts=PARTS, meanwhile=caller) as path:
            self._state, self._batch = loaded(path, name, f"{name}_batch")
        self._state.restype, self._batch.restype = None, ctypes.c_size_t

    @property
    def state_address(self) -> int:
        """Address of the function for one state, ``void(const double *const *in, double *const *out)``."""
        return _address(self._state)

    @property
    def batch_address(self) -> int:
        """Address of the function for a batch; :mod:`.emit_c` gives its type."""
        return _address(self._batch)

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states; see :class:`.backends.Kernel`."""
        if count == 1:
            if not all_finite(*inputs):
                return False
            # The function for one state gives the same bits; in lanes the compiler may fuse other operations.
            self._state(_pointers([x.ctypes.data for x in inputs]), _pointers([y.ctypes.data for y in outputs]))
            return True
        return all(in_threads(count, STATES_PER_THREAD, lambda start, stop: self._run(start, stop, inputs, outputs)))

    def _run(self, start: int, stop: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        strides = [x.strides[0] if len(x) > 1 else 0 for x in inputs]
        done: int = self._batch(
            ctypes.c_size_t(stop - start),
            _pointers([x.ctypes.data + start * stride for x, stride in zip(inputs, strides, strict=True)]),
            (ctypes.c_size_t * len(strides))(*(stride // 8 for stride in strides)),
            _pointers([y.ctypes.data + start * y.strides[0] for y in outputs]),
        )
        return done == stop - start


def loaded(path: Path, *names: str) -> list[Any]:
    """Functions of a shared object. Raises KernelError if it cannot be loaded or lacks a function."""
    try:
        library = ctypes.CDLL(str(path))
        return [library[name] for name in names]
    except (OSError, AttributeError) as error:
        raise KernelError(f"a compiled kernel cannot be loaded: {error}") from None


def in_threads(count: int, least: int, run: Callable[[int, int], T]) -> list[T]:
    """Results of ``run(start, stop)`` for parts of a batch, on as many cores as give each at least ``least`` items."""
    threads = min(_processors(), count // least) if count >= 2 * least else 1
    if threads < 2:
        return [run(0, count)]
    bounds = [count * k // threads for k in range(threads + 1)]
    parts = [_pool().submit(run, start, stop) for start, stop in pairwise(bounds)]
    return [part.result() for part in parts]


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None  # the library defines it
    return address


def _pointers(addresses: Sequence[int]) -> Any:
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _processors() -> int:
    return len(os.sched_getaffinity(0))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_processors(), thread_name_prefix="eom_dynamics")


# A forked process lacks the threads of its parent.
os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def extension(name: str, include: str = "", version: str = "") -> ModuleType:
    """Extension module ``eom_dynamics_{name}`` of the source ``{name}.c``, for this version of Python.

    ``include`` is an additional header folder, ``version`` its version. Raises KernelError if the module
    cannot be compiled or loaded.
    """
    python = sysconfig.get_path("include")
    source, suffix = csrc(f"{name}.c"), sysconfig.get_config_var("EXT_SUFFIX")

    def checked() -> str:
        if not (Path(python) / "Python.h").exists():
            raise KernelError(f"no Python headers in {python} (Debian: apt install python3-dev)")
        return source

    module_name, key = f"eom_dynamics_{name}", digest(name, source, suffix, version)
    includes = [f"-I{folder}" for folder in (python, include) if folder]
    with compiled(checked, key, includes) as path:
        loader = importlib.machinery.ExtensionFileLoader(module_name, str(path))
        spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
        except ImportError as error:
            raise KernelError(f"the compiled {name} cannot be loaded: {error}") from None
    # The path names a descriptor, which is closed here. A reader of all modules' files would otherwise read another
    # descriptor with this number, and wait for ever on a pipe.
    del module.__file__
    return module


def caller() -> ModuleType:
    """Extension that calls kernels; errors as in :func:`extension`."""
    # NumPy's headers may move with an update; the version is part of the key.
    return extension("caller", np.get_include(), np.__version__)


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
    """Settings in C: ``ik_task`` of csrc/inverse_kinematics_step.c.in."""

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
            solver = csrc("inverse_kinematics_step.c.in") + "\n" + csrc("inverse_kinematics.c.in")
            return c_source(recipe(robot)) + filled(solver, **sizes, **_CONSTANTS)

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
