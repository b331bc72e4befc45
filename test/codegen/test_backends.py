# SPDX-License-Identifier: Apache-2.0
"""All backends against the closed form, for states and batches in any memory layout; numbers that are not finite."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation

from eom_dynamics import Dynamics, Robot, StateError, equations_of_motion
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.codegen.backends import KERNELS

STATES = 200

# The accuracy that the project promises, relative to the largest entry of a state's effort, effort rate or matrix.
PROMISED = 1e-11

Array = np.ndarray


class Reference(NamedTuple):
    """States (5, STATES, n) and wrenches (3, STATES, 6) that float32 represents exactly, efforts (3, STATES, n)."""

    robot: Robot
    states: Array
    wrench: Array
    efforts: Array


@cache
def reference(name: str) -> Reference:
    robot, rng = fixed_case(name, 0).robot, np.random.default_rng(0)
    states = rng.integers(-2000, 2000, (5, STATES, robot.n)) / 1024
    wrench = rng.integers(-5000, 5000, (3, STATES, 6)) / 1024
    efforts = [
        equations_of_motion(robot, *x[:4], wrench=W).efforts(x[4])
        for x, W in zip(states.swapaxes(0, 1), wrench.swapaxes(0, 1), strict=True)
    ]
    return Reference(robot, states, wrench, np.array(efforts).swapaxes(0, 1))


@cache
def dynamics(name: str, backend: str) -> Dynamics:
    return Dynamics(reference(name).robot, backend=backend)


def assert_promised(actual: Any, desired: Array) -> None:
    """Check efforts (3, N, n), relative to the largest entry for each state and order."""
    assert np.shape(actual) == desired.shape
    scale = np.max(np.abs(desired), axis=-1, keepdims=True)
    assert np.max(np.abs(np.array(actual) - desired) / scale, initial=0.0) < PROMISED


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "row-major": np.ascontiguousarray,
    "column-major": np.asfortranarray,
    "strided rows": lambda x: np.repeat(x, 2, axis=0)[::2],
    "strided entries": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "padded rows": lambda x: np.pad(x, [(0, 0), (1, 2)])[:, 1:-2],
    "reversed rows": lambda x: x[::-1].copy()[::-1],
    "reversed entries": lambda x: x[:, ::-1].copy()[:, ::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "unaligned": lambda x: np.frombuffer(b"0" + x.tobytes(), dtype=np.uint8)[1:].view(float).reshape(x.shape),
    "float32": lambda x: x.astype(np.float32),
    "longdouble": lambda x: x.astype(np.longdouble),
    "big-endian": lambda x: x.astype(">f8"),
    "subclass": lambda x: x.view(np.recarray),
    "list": lambda x: x.tolist(),
    "list of arrays": list,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "backend"), [("iiwa", "native"), ("mixed_chain", "numpy")], ids=str)
def test_memory_layouts(name: str, backend: str, layout: str) -> None:
    x, convert = reference(name), LAYOUTS[layout]
    run = dynamics(name, backend).inverse_dynamics
    states, wrench = [convert(s) for s in x.states], [convert(W) for W in x.wrench]
    assert_promised(run(*states, wrench=wrench), x.efforts)
    efforts = [run(*(s[i] for s in states), wrench=tuple(W[i] for W in wrench)) for i in range(10)]
    assert_promised(np.array(efforts).swapaxes(0, 1), x.efforts[:, :10])


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("backend", KERNELS)
class TestEachBackend:
    @pytest.mark.usefixtures("frequent_switches")
    def test_calls_from_several_threads(self, backend: str) -> None:
        """Each thread has its own state, then its own batch; a shared buffer would be overwritten."""
        x, run = reference("mixed_chain"), dynamics("mixed_chain", backend).inverse_dynamics

        def states(i: int) -> float:
            return max(deviation(run(*x.states[:, i], wrench=x.wrench[:, i])[0], x.efforts[0, i]) for _ in range(100))

        def batch(i: int) -> None:
            chosen = slice(25 * i, 25 * i + 25)
            assert_promised(run(*x.states[:, chosen], wrench=x.wrench[:, chosen]), x.efforts[:, chosen])

        with ThreadPoolExecutor(8) as pool:
            assert max(pool.map(states, range(8))) < PROMISED
            list(pool.map(batch, range(8)))


# --- Numbers that are not finite --------------------------------------------------------

# A multiple of the number of lanes, some more, and enough states for several threads.
COUNTS = (8, 21, 9001)


@pytest.fixture(scope="module", params=KERNELS)
def mixed(request: pytest.FixtureRequest) -> Dynamics:
    return dynamics("mixed_chain", request.param)


def states(count: int) -> list[Array]:
    return list(np.random.default_rng(0).uniform(-2, 2, (5, count, 4)))


@pytest.mark.parametrize("count", COUNTS)
def test_numbers_that_are_not_finite(mixed: Dynamics, count: int) -> None:
    """In a state, also if results overwrite states, or in a wrench."""
    for which, name in enumerate(STATE_NAMES):
        for row, value in ((0, np.nan), (7, np.inf), (count // 2, -np.inf), (count - 1, np.nan)):
            bad = states(count)
            bad[which][row, 3] = value
            for options in ({}, {"out": bad[:3]}):
                with pytest.raises(StateError) as error:
                    mixed.inverse_dynamics(*bad, **options)
                assert str(error.value) == f"{name} must be finite; entry [{row}, 3] is {value}"
    for wrench in (np.full(6, 1.0), np.full((count, 6), 1.0)):
        wrench[..., 5] = np.nan
        with pytest.raises(StateError, match="wrench Wd must be finite"):
            mixed.inverse_dynamics(*states(count), wrench=(np.zeros(6), wrench))


def test_the_largest_numbers_are_finite(mixed: Dynamics) -> None:
    large = states(21)
    large[4][5] = np.finfo(float).max
    with np.errstate(all="ignore"):
        taudd = mixed.inverse_dynamics(*large)[2]
    assert np.all(np.isfinite(np.delete(taudd, 5, axis=0)))
