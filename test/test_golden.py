# SPDX-License-Identifier: Apache-2.0
"""Golden values of every packaged robot on every backend: a change of compiler, NumPy or emitter is seen."""

import gzip
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import golden
import numpy as np
import pytest

from eom_dynamics import Dynamics, ElasticArm, load_robot, packaged_robots
from eom_dynamics.arrays import STATE_NAMES, WRENCH_NAMES
from eom_dynamics.codegen.backends import KERNELS

# Relative to the largest entry of a quantity in a state: all backends are within 3.1e-15, 14 units in the last place,
# with GCC 12 and NumPy 2 on x86-64. One more rounding of each of the largest terms fits in.
TOLERANCE = 5e-15


@cache
def values(name: str) -> dict[str, np.ndarray]:
    return golden.read(name)


def assert_golden(name: str, found: dict[str, np.ndarray], rows: slice = slice(None)) -> None:
    for quantity in golden.OUTPUTS:
        expected = values(name)[quantity][rows]
        sizes = np.max(np.abs(expected), axis=1, keepdims=True)
        misses = np.abs(found[quantity] - expected) / np.where(sizes > 0, sizes, 1.0)
        state, entry = np.unravel_index(np.argmax(misses), misses.shape)
        assert misses[state, entry] <= TOLERANCE, f"{quantity}[{entry}] in state {state}: {misses[state, entry]:.2g}"


def test_there_are_golden_values_of_every_packaged_robot_with_17_digits_which_identify_a_double() -> None:
    assert {path.name.removesuffix(".csv.gz") for path in golden.FOLDER.glob("*.gz")} == set(packaged_robots())
    for path in golden.FOLDER.glob("*.gz"):
        with gzip.open(path, "rt") as file:
            texts = file.read().splitlines()[1].split(",")
        assert max(len(text.lstrip("-0.").replace(".", "")) for text in texts) >= 17


SLOW_TO_COMPILE = ("dual_arm", "iiwa", "panda")
OF_ALL_BACKENDS = ("leg", "planar_pr", "vsa_planar_2r")


def backends() -> Iterator[Any]:
    for name, backend in product(packaged_robots(), KERNELS):
        quick = name not in SLOW_TO_COMPILE if backend == "native" else name in OF_ALL_BACKENDS
        yield pytest.param(name, backend, marks=() if quick else pytest.mark.soak)


@pytest.mark.parametrize(("name", "backend"), list(backends()))
def test_backends(name: str, backend: str) -> None:
    arm = ElasticArm(load_robot(name))
    arm.dynamics = Dynamics(arm.robot, backend=backend)
    assert_golden(name, golden.command(values(name), arm)._asdict())
    for row in range(0, golden.STATES, 25):
        states = [values(name)[key][row] for key in STATE_NAMES]
        wrench = [values(name)[key][row].reshape(arm.robot.wrench_shape) for key in WRENCH_NAMES]
        one = arm.feedforward(*states, wrench=wrench)
        found = {key: x[np.newaxis] for key, x in one._asdict().items()}
        assert_golden(name, found, slice(row, row + 1))
