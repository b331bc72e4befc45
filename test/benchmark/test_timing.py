# SPDX-License-Identifier: Apache-2.0
"""Times of tasks that are known to differ."""

from __future__ import annotations

import gc
import time

import numpy as np

from eom_dynamics.benchmark.timing import Task, Timings, interleaved


def test_times_are_those_of_one_evaluation() -> None:
    tasks = {"one": Task(lambda: time.sleep(0.002)), "ten": Task(lambda: time.sleep(0.002), 10)}
    timings = interleaved(tasks, 5, at_least=0.004)
    assert 0.002 < timings.median("one") < 0.1
    assert 4 < timings.ratio("one", "ten") < 25


def test_median_quartiles_and_paired_ratio() -> None:
    timings = Timings({"a": np.array([1.0, 2.0, 30.0, 4.0, 5.0]), "b": np.array([2.0, 4.0, 60.0, 8.0, 1.0])})
    assert timings.median("a") == 4.0
    assert timings.quartiles("a") == (2.0, 5.0)
    assert timings.ratio("b", "a") == 2.0


def test_each_task_runs_in_each_round_and_the_first_changes() -> None:
    calls: list[str] = []
    tasks = {name: Task(lambda name=name: (calls.append(name), time.sleep(0.001))) for name in "abc"}
    timings = interleaved(tasks, 3, at_least=1e-4)
    assert "".join(calls[-9:]) == "abcbcacab"
    assert all(len(samples) == 3 for samples in timings.samples.values())


def test_the_garbage_collector_is_left_as_it_was() -> None:
    was = gc.isenabled()
    interleaved({"idle": Task(lambda: None)}, 1, at_least=1e-5)
    assert gc.isenabled() is was
