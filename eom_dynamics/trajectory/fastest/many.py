# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along many paths, in processes on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import bounds
from ...exceptions import TrajectoryError
from ..trajectory import Trajectory
from .motion import FastestMotion
from .search import minimum_time

_Found = tuple[Array, Array, Array, float]


def minimum_times(
    arm: ElasticArm, paths: Iterable[Trajectory | ArrayLike], *, workers: int | None = None, **options: Any
) -> list[FastestMotion | TrajectoryError]:
    """The fastest motion along each path, or the error that refuses it.

    Scripts that call it need a guard ``if __name__ == "__main__":``, since processes import them.

    Args:
        arm: the arm; compiled code comes from the cache.
        paths: each as for :func:`.minimum_time`; they are pickled.
        workers: number of processes; by default that of the cores.
        options: ``limits``, ``tool`` and ``corner`` of :func:`.minimum_time`.
    """
    # Most users of this package start no processes.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    own = bounds(arm, options.get("limits"))
    with ProcessPoolExecutor(workers or os.cpu_count(), context, _start, (arm, options)) as pool:
        found = list(pool.map(_find, paths))
    return [x if isinstance(x, TrajectoryError) else FastestMotion(arm, own, *x) for x in found]


_TASK: dict[str, Any] = {}


def _start(arm: ElasticArm, options: Mapping[str, Any]) -> None:
    _TASK.update(arm=arm, options=options)


def _find(path: Trajectory | ArrayLike) -> _Found | TrajectoryError:
    try:
        motion = minimum_time(_TASK["arm"], path, **_TASK["options"])
    except TrajectoryError as error:
        return error
    return motion.t, motion.states, motion.parameters, motion.computing_time
