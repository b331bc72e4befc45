# SPDX-License-Identifier: Apache-2.0
"""Steps of a process up to its first result; prints the seconds of each."""

import json
import time
from itertools import pairwise

at = [time.perf_counter()]

import numpy as np  # noqa: E402

import eom_dynamics as eom  # noqa: E402

at.append(time.perf_counter())
robot = eom.load_robot("iiwa")
at.append(time.perf_counter())
dynamics = eom.Dynamics(robot)
at.append(time.perf_counter())
dynamics.inverse_dynamics(*np.full((5, 7), 0.5))
at.append(time.perf_counter())
steps = ("imports", "robot", "dynamics", "result")
print(json.dumps({step: after - before for step, (before, after) in zip(steps, pairwise(at), strict=True)}))
