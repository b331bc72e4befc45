# SPDX-License-Identifier: Apache-2.0
"""Golden values: states of the packaged robots with efforts and motor side, in the repository as compressed text.

Each file is a CSV of one robot with a row for each state: q … qdddd and W, Wd, Wdd with few digits, which doubles hold
exactly, then tau, taud, taudd and the motor side with 17 digits, which identify a double. ``python
test/helpers/golden.py`` writes them, if a change is meant: efforts with 50 digits of arithmetic, rounded at the end.
"""

import csv
import gzip
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from exact import Wrapped

from eom_dynamics import ElasticArm, Feedforward, Robot, StateError, equations_of_motion, load_robot, packaged_robots
from eom_dynamics.arrays import STATE_NAMES, WRENCH_NAMES

FOLDER = Path(__file__).parents[1] / "golden"

INPUTS = (*STATE_NAMES, *WRENCH_NAMES)
OUTPUTS = Feedforward._fields

STATES = 100
DIGITS = 50

# Steps and largest magnitude of inputs: binary fractions.
_STEPS = dict(zip(INPUTS, (1 / 64, 1 / 64, 1 / 16, 1 / 4, 2, 1 / 8, 1 / 8, 1 / 8), strict=True))
_LARGEST = dict(zip(INPUTS, (3, 2, 8, 32, 256, 16, 16, 16), strict=True))


def read(name: str) -> dict[str, np.ndarray]:
    """Values of a robot by name: (states, size)."""
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", encoding="ascii", newline="") as file:
        header, *rows = csv.reader(file)
    values = np.array(rows, dtype=float)
    names = [column.split("[")[0] for column in header]
    return {each: values[:, [k for k, n in enumerate(names) if n == each]] for each in dict.fromkeys(names)}


def command(values: Mapping[str, np.ndarray], arm: ElasticArm) -> Feedforward:
    """Command of an arm for the states of golden values."""
    robot = arm.robot
    wrench = [values[name].reshape(-1, *robot.wrench_shape) for name in WRENCH_NAMES]
    return arm.feedforward(*(values[name] for name in STATE_NAMES), wrench=wrench)


def draw(arm: ElasticArm) -> dict[str, np.ndarray]:
    """States with a feasible motor command."""
    rng = np.random.default_rng(2026)
    rows: list[dict[str, np.ndarray]] = []
    sizes = dict.fromkeys(STATE_NAMES, arm.robot.n) | dict.fromkeys(WRENCH_NAMES, 6 * len(arm.robot.tools))
    # Antagonistic springs hold less than such motions need: slower motions, until enough are found.
    slower = 1.0
    while len(rows) < STATES:
        row = {}
        for k, name in enumerate(INPUTS):
            scale = _LARGEST[name] / _STEPS[name] * (1.0 if name == "q" else slower ** max(k % 5, 1))
            row[name] = np.round(rng.uniform(-scale, scale, (1, sizes[name]))) * _STEPS[name]
        try:
            command(row, arm)
        except StateError:
            slower = max(slower * 0.9, 0.2)
            continue
        rows.append(row)
    return {name: np.concatenate([row[name] for row in rows]) for name in INPUTS}


class Number(Wrapped):
    """A number of many digits, with the methods that the recursion asks for."""

    @staticmethod
    def of(value: Any) -> Any:
        from mpmath import mpf

        return mpf(value)

    def sin(self) -> Any:
        return Number(self.value.context.sin(self.value))

    def cos(self) -> Any:
        return Number(self.value.context.cos(self.value))

    def __float__(self) -> float:
        return float(self.value)


def exact_efforts(robot: Robot, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Efforts (3, states, n) by the recursion on numbers of 50 digits, for inertias that were not regrouped."""
    import mpmath

    from eom_dynamics.recursion.links import link_tree
    from eom_dynamics.recursion.newton_euler import inverse_dynamics

    tree = link_tree(robot, regrouped=False)
    results = []
    with mpmath.workdps(DIGITS):
        for k in range(STATES):
            q, *rates = ([Number(x) for x in values[name][k].tolist()] for name in STATE_NAMES)
            wrench = [[Number(x) for x in values[name][k].tolist()] for name in WRENCH_NAMES]
            efforts = inverse_dynamics(tree, [q, *rates], wrench)
            results.append([[float(x) for x in row] for row in efforts])
    return np.array(results).swapaxes(0, 1)


def write(name: str) -> None:
    """Make the file of a robot, after checks by other routes."""
    robot = load_robot(name)
    arm = ElasticArm(robot)
    values = draw(arm)
    efforts = exact_efforts(robot, values)
    _check_efforts(robot, values, efforts)
    outputs = _motors(arm, values, efforts)
    _check_motors(arm, values, outputs)
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    everything = values | outputs
    writer.writerow([f"{key}[{i}]" for key, value in everything.items() for i in range(value.shape[1])])
    for k in range(STATES):
        inputs = [f"{x:.10g}" for key in INPUTS for x in values[key][k]]
        writer.writerow([*inputs, *(f"{x:.17g}" for key in OUTPUTS for x in outputs[key][k])])
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.csv.gz"
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(table.getvalue().encode("ascii"))
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


def _motors(arm: ElasticArm, values: Mapping[str, np.ndarray], efforts: np.ndarray) -> dict[str, np.ndarray]:
    """Outputs for the exact efforts: the motor side in double precision."""
    original = arm.efforts
    arm.efforts = lambda *states, **options: tuple(efforts)  # type: ignore[method-assign]
    try:
        found = command(values, arm)
    finally:
        arm.efforts = original  # type: ignore[method-assign]
    return dict(zip(OUTPUTS, found, strict=True))


def _check_efforts(robot: Robot, values: Mapping[str, np.ndarray], efforts: np.ndarray) -> None:
    """The closed form shares no code with the recursion; it loses some digits."""
    wrench = [values[name].reshape(-1, *robot.wrench_shape) for name in WRENCH_NAMES]
    for k in range(STATES):
        states = [values[name][k] for name in STATE_NAMES]
        found = equations_of_motion(robot, *states[:4], wrench=[W[k] for W in wrench]).efforts(states[4])
        for x, y in zip(found, efforts[:, k], strict=True):
            assert np.max(np.abs(x - y)) <= 1e-11 * max(np.max(np.abs(y)), 1.0), (robot.name, k)


def _check_motors(arm: ElasticArm, values: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> None:
    """Springs and their rates, from positions and velocities of motors and links, give the efforts back."""
    efforts, rates = arm.spring_efforts(
        outputs["motor_position"], outputs["motor_velocity"], values["q"], values["qd"], rigid_too=True
    )[:2]
    for found, name in ((efforts, "tau"), (rates, "taud")):
        expected = outputs[name][:, ~arm.rigid]
        np.testing.assert_allclose(found[:, ~arm.rigid], expected, atol=1e-8 * max(np.max(np.abs(outputs[name])), 1.0))


def main(names: list[str]) -> None:
    for name in names or packaged_robots():
        write(name)


if __name__ == "__main__":
    main(sys.argv[1:])
