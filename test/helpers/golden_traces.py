# SPDX-License-Identifier: Apache-2.0
"""Golden traces: drive commands of the packaged robots in random scenes, in the repository.

``python test/helpers/golden_traces.py [ROBOT …]`` records them again, and ``PYTHONPATH=test/helpers python
test/ros/test_engines.py`` those of its scenes. A commit that does so states the reason.

Random scenes draw the inputs of :mod:`random_scenes` without early setpoints, speeds above 100 % and payload changes in
motion, and with at most one payload change.
"""

import os
import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from loop_rig import Record
from random_scenes import INPUTS, Scene

from eom_dynamics import load_robot, packaged_robots
from eom_dynamics.arrays import Array

FOLDER = Path(__file__).parents[1] / "golden/traces"

SCENES, CYCLES = 50, 400
"""Scenes of each robot, and their length."""

EVERY = 50
"""Distance between recorded commands, cycles."""

TOLERANCE = 1e-9
"""Largest difference of commands; other processors and compilers round differently."""


class GoldenScene(Scene):
    """Random inputs of a packaged robot."""

    _has_payload = False

    def speed(self) -> None:
        self.rig.loop.speed(float(self.rng.choice([0.0, 0.3, 1.0])))

    def payload(self) -> None:
        if not (self._has_payload or self.rig.loop.setpoint["qd"].any()):
            self._has_payload = True
            super().payload()


GoldenScene.robots = {name: partial(load_robot, name) for name in packaged_robots()}
GoldenScene.inputs = {name: give for name, give in INPUTS.items() if name != "setpoint: early"}
GoldenScene.inputs |= {"speed": GoldenScene.speed, "payload": GoldenScene.payload}


def trace(robot: str) -> dict[str, Array]:
    """Traces of the scenes of a packaged robot, each as by :func:`trace_of`."""
    names = list(GoldenScene.robots)
    records = (GoldenScene(names.index(robot) + k * len(names), CYCLES).run() for k in range(SCENES))
    return {f"{name} {k}": rows for k, record in enumerate(records) for name, rows in trace_of(record).items()}


def trace_of(record: Record) -> dict[str, Array]:
    """Trace of N cycles.

    Returns:
        ``command`` (N / EVERY, K): the vectors of the drive command in a row; ``status`` and ``refusal`` (N,).
    """
    return {
        "command": np.concatenate([*record.sent.values()], axis=1)[::EVERY],
        "status": record.numbers["status"].astype(np.uint8),
        "refusal": record.code.astype(np.int16),
    }


def read(name: str) -> dict[str, Array]:
    """Recorded traces of a packaged robot."""
    with np.load(FOLDER / f"{name}.npz") as file:
        return dict(file)


def write(name: str, traces: dict[str, Array]) -> None:
    """Record traces."""
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(FOLDER / f"{name}.npz", **traces)  # type: ignore[arg-type]


def assert_same(traces: dict[str, Array], golden: dict[str, Array], tolerance: float = TOLERANCE) -> None:
    """Compare statuses and refusals exactly, and commands up to a tolerance relative to the largest one."""
    assert traces.keys() == golden.keys()
    for name, rows in traces.items():
        if rows.dtype == float:
            scale = 1 + np.nanmax(np.abs(golden[name]), axis=0)
            np.testing.assert_allclose(rows / scale, golden[name] / scale, rtol=0, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(rows, golden[name], err_msg=name)


if __name__ == "__main__":
    for robot in sys.argv[1:] or GoldenScene.robots:
        write(robot, trace(robot))
        print(robot)
