# SPDX-License-Identifier: Apache-2.0
"""Single-threaded linear algebra: for small matrices, synchronising threads costs far more than the arithmetic."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

# OpenBLAS as distributions build it, and as wheels of NumPy and SciPy rename it.
_NAMES = tuple(
    tuple(f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
    for prefix, suffix in product(("", "scipy_"), ("", "64_"))
)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which every OpenBLAS of this process uses one thread; other BLAS libraries are unaffected."""
    found = list(_libraries())
    before = [get() for get, _ in found]
    for _, set_threads in found:
        set_threads(1)
    try:
        yield
    finally:
        for (_, set_threads), count in zip(found, before, strict=True):
            set_threads(count)


def _libraries() -> Iterator[tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer]]:
    """Functions of each loaded OpenBLAS that get and set its number of threads."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return
    paths = {line.split(maxsplit=5)[-1] for line in lines if "openblas" in line}
    for path in sorted(path for path in paths if path.startswith("/") and Path(path).exists()):
        library = ctypes.CDLL(path)
        for get, set_threads in _NAMES:
            if hasattr(library, set_threads):
                yield getattr(library, get), getattr(library, set_threads)
                break
