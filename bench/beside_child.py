# SPDX-License-Identifier: Apache-2.0
"""Feedforward beside inverse dynamics of the arms of robot files, by whichever eom_dynamics Python finds.

Prints, for each file, the ratios of the times of one state and of a batch, or null where the arm is refused.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import eom_dynamics as eom


def ratio(first, second, rounds, at_least):
    """Median of the ratios of the times of interleaved calls."""
    repeats = {}
    for call in (first, second):
        call()
        start = time.perf_counter()
        call()
        repeats[call] = max(1, round(at_least / (time.perf_counter() - start)))
    ratios = []
    for _ in range(rounds):
        seconds = []
        for call in (first, second):
            start = time.perf_counter()
            for _ in range(repeats[call]):
                call()
            seconds.append((time.perf_counter() - start) / repeats[call])
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)


folder, count, rounds, slow_rounds = Path(sys.argv[1]), *map(int, sys.argv[2:])
random = np.random.default_rng(1)
one = [random.uniform(-1, 1, 7) for _ in range(5)]
many = [random.uniform(-1, 1, (count, 7)) for _ in range(5)]
for file in sorted(folder.glob("*.yaml")):
    try:
        robot = eom.load_robot(str(file))
        arm, links = eom.ElasticArm(robot), eom.Dynamics(robot)
        found = [
            ratio(lambda: arm.feedforward(*x), lambda: links.inverse_dynamics(*x), *settings)  # noqa: B023
            for x, settings in ((one, (rounds, 2e-3)), (many, (slow_rounds, 0.0)))
        ]
    except (ValueError, TypeError):
        found = None
    print(json.dumps(found), flush=True)
