# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing, by a clock that only the tasks move."""

import gc
from collections.abc import Callable

import numpy as np
import pytest
import timing
from timing import TimedTask, Timings, interleaved

Sleep = Callable[[float], None]


@pytest.fixture
def sleep(monkeypatch) -> Sleep:
    now = [0.0]

    def move(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return move


def test_times_are_those_of_one_evaluation(sleep: Sleep) -> None:
    tasks = {"one": TimedTask(lambda: sleep(0.002)), "ten": TimedTask(lambda: sleep(0.002), 10)}
    timings = interleaved(tasks, 5, at_least=0.005)
    assert timings.median("one") == pytest.approx(0.002)
    assert timings.ratio("one", "ten") == pytest.approx(10)
    assert Timings({"a": np.array([1.0, 2.0, 30.0, 4.0, 5.0])}).quartiles("a") == (2.0, 5.0)


def test_tasks_run_in_rotating_order(sleep: Sleep) -> None:
    calls: list[str] = []
    tasks = {name: TimedTask(lambda name=name: (calls.append(name), sleep(0.001))) for name in "abc"}
    timings = interleaved(tasks, 3, at_least=1e-4)
    assert "".join(calls[-9:]) == "abcbcacab"
    assert all(len(samples) == 3 for samples in timings.samples.values())
    assert gc.isenabled()
