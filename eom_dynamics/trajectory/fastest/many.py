# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along many paths, in processes on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import bounds
from ...exceptions import TrajectoryError
from ..spline import Spline
from ..trajectory import Trajectory
from .motion import FastestMotion
from .search import minimum_time

# Chunks of paths for each process: some paths take longer than others.
_CHUNKS = 4

_Found = tuple[Spline, Array, float]


def minimum_times(
    arm: ElasticArm, paths: Iterable[Trajectory | ArrayLike], *, workers: int | None = None, **options: Any
) -> list[FastestMotion | TrajectoryError]:
    """The fastest motion along each path, or the error that refuses it.

    Scripts that call it need a guard ``if __name__ == "__main__":``, since processes import them.

    Args:
        arm: the arm; compiled code comes from the cache.
        paths: each as for :func:`.minimum_time`; they are pickled.
        workers: number of processes; by default that of the cores.
        options: ``limits``, ``tool``, ``start`` and ``end`` of :func:`.minimum_time`.
    """
    # Most users of this package start no processes.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    workers, given, own = workers or os.cpu_count() or 1, list(paths), bounds(arm, options.get("limits"))
    find = partial(_found, arm, options)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        # The arm goes along with each chunk.
        found = list(pool.map(find, given, chunksize=-(-len(given) // (_CHUNKS * workers)) or 1))
    return [x if isinstance(x, TrajectoryError) else FastestMotion(arm, own, *x) for x in found]


def _found(arm: ElasticArm, options: Mapping[str, Any], path: Trajectory | ArrayLike) -> _Found | TrajectoryError:
    try:
        motion = minimum_time(arm, path, **options)
    except TrajectoryError as error:
        return error
    return Spline(motion.t, motion.states), motion.parameters, motion.computing_time
