# SPDX-License-Identifier: Apache-2.0
"""Times of several tasks, taken in turn, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Something to time.

    Attributes:
        run: does it.
        count: how many evaluations a run is.
    """

    run: Callable[[], Any]
    count: int = 1


@dataclass(frozen=True)
class Timings:
    """Seconds an evaluation, one for each task and round.

    Attributes:
        samples: by the name of the task, (rounds,); all tasks of a round ran right after each other.
    """

    samples: Mapping[str, Array]

    def median(self, name: str) -> float:
        """The median in s."""
        return float(np.median(self.samples[name]))

    def quartiles(self, name: str) -> tuple[float, float]:
        """The range in s that holds the middle half of the samples."""
        low, high = np.quantile(self.samples[name], [0.25, 0.75])
        return float(low), float(high)

    def ratio(self, name: str, reference: str) -> float:
        """How many times as long a task takes as another: the median over the rounds."""
        return float(np.median(self.samples[name] / self.samples[reference]))


def interleaved(tasks: Mapping[str, Task], rounds: int, *, at_least: float = 2e-3) -> Timings:
    """Time tasks in turn.

    Args:
        tasks: by name.
        rounds: how often each is timed.
        at_least: seconds that a sample takes; shorter tasks run repeatedly for one.
    """
    repeats = {name: _repeats(task, at_least) for name, task in tasks.items()}
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    names = list(tasks)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(rounds):
            # Another one first each time: what a task leaves in the caches does not always meet the same one.
            for name in names[k % len(names) :] + names[: k % len(names)]:
                seconds = _seconds(tasks[name], repeats[name])
                samples[name].append(seconds / repeats[name] / tasks[name].count)
    finally:
        if collecting:
            gc.enable()
    return Timings({name: np.array(values) for name, values in samples.items()})


def _repeats(task: Task, at_least: float) -> int:
    _seconds(task, 1)  # the first run may load or allocate
    repeats = 1
    while (seconds := _seconds(task, repeats)) < at_least:
        repeats = max(2 * repeats, int(repeats * at_least / max(seconds, 1e-7)))
    return repeats


def _seconds(task: Task, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        task.run()
    return time.perf_counter() - start
