# SPDX-License-Identifier: Apache-2.0
"""Kernels in compiled C, called without copies and without the global interpreter lock."""

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
from typing import Any, TypeVar

import numpy as np

from ..arguments import all_finite
from ..arrays import Array
from ..exceptions import KernelError
from ..robot import Robot
from .c_functions import csrc
from .cache import digest
from .compiler import compiled
from .emit_c import PARTS, c_source
from .program import c_name
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

    ``include`` is an additional header folder, ``version`` its version. Raises KernelError if the module cannot be
    compiled or loaded.
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
