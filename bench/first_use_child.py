# SPDX-License-Identifier: Apache-2.0
"""Steps of a process up to its first result; prints the seconds of each."""

import json
import time

start = time.perf_counter()

import numpy as np  # noqa: E402

import eom_dynamics as eom  # noqa: E402

steps = {"imports": time.perf_counter() - start}


def step(name: str, since: float) -> float:
    """Record the time since the last step."""
    now = time.perf_counter()
    steps[name] = now - since
    return now


state = np.full((5, 7), 0.5)
now = time.perf_counter()
robot = eom.load_robot("iiwa")
now = step("robot", now)
dynamics = eom.Dynamics(robot)
now = step("dynamics", now)
dynamics.inverse_dynamics(*state)
step("result", now)
print(json.dumps(steps))
