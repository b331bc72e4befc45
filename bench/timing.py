# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing of several tasks, so that disturbances affect all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eom_dynamics.arrays import Array


@dataclass(frozen=True)
class TimedTask:
    """A function to time.

    Attributes:
        run: the function.
        count: number of evaluations per call.
    """

    run: Callable[[], Any]
    count: int = 1


@dataclass(frozen=True)
class Timings:
    """Times per evaluation.

    Attributes:
        samples: (rounds,) by name of the task, s; all tasks of a round ran one right after the other.
    """

    samples: Mapping[str, Array]

    def median(self, name: str) -> float:
        """Return the median, s."""
        return float(np.median(self.samples[name]))

    def quartiles(self, name: str) -> tuple[float, float]:
        """Return the first and third quartile, s."""
        low, high = np.quantile(self.samples[name], [0.25, 0.75])
        return float(low), float(high)

    def ratio(self, name: str, reference: str) -> float:
        """Return the time of a task relative to another: the median over the rounds."""
        return float(np.median(self.samples[name] / self.samples[reference]))


def interleaved(tasks: Mapping[str, TimedTask], rounds: int, *, at_least: float = 2e-3) -> Timings:
    """Time tasks, interleaved in rotating order.

    Args:
        rounds: number of samples of each.
        at_least: shortest duration of a sample, s; shorter tasks are repeated.
    """
    repeats = {name: _repeats(task, at_least) for name, task in tasks.items()}
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    names = list(tasks)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(rounds):
            # Rotate the order, so that a task does not always find the caches as the same other task left them.
            for name in names[k % len(names) :] + names[: k % len(names)]:
                seconds = _seconds(tasks[name], repeats[name])
                samples[name].append(seconds / repeats[name] / tasks[name].count)
    finally:
        if collecting:
            gc.enable()
    return Timings({name: np.array(values) for name, values in samples.items()})


def _repeats(task: TimedTask, at_least: float) -> int:
    _seconds(task, 1)  # warm-up
    repeats = 1
    while (seconds := _seconds(task, repeats)) < at_least:
        repeats = max(2 * repeats, int(repeats * at_least / max(seconds, 1e-7)))
    return repeats


def _seconds(task: TimedTask, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        task.run()
    return time.perf_counter() - start
