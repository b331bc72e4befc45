# SPDX-License-Identifier: Apache-2.0
"""Every backend against the closed form on 1,000 random states, in every layout that an array can have."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation, gradient

from eom_dynamics import Dynamics, Robot, equations_of_motion
from eom_dynamics.kernel.backends import KERNELS

STATES = 1000
ROBOTS = ("iiwa", "mixed_chain")

# Of the largest entry of a state's effort (or rate, or matrix), state by state: what the project promises.
PROMISED = 1e-11

Array = np.ndarray


class Reference(NamedTuple):
    """States (5, 1000, n) and wrenches (3, 1000, 6) of few enough bits for float32, efforts (3, 1000, n)."""

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
    if backend == "casadi":
        pytest.importorskip("casadi", reason="CasADi is not installed")
    return Dynamics(reference(name).robot, backend=backend)


def assert_promised(actual: Any, desired: Array) -> None:
    """``desired`` has the shape (3, N, n): a scale for each state of each order."""
    assert np.shape(actual) == desired.shape
    scale = np.max(np.abs(desired), axis=-1, keepdims=True)
    assert np.max(np.abs(np.array(actual) - desired) / scale, initial=0.0) < PROMISED


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "rows apart": lambda x: np.repeat(x, 2, axis=0)[::2],
    "entries apart": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "padded rows": lambda x: np.pad(x, [(0, 0), (1, 2)])[:, 1:-2],
    "last row first": lambda x: x[::-1].copy()[::-1],
    "last entry first": lambda x: x[:, ::-1].copy()[:, ::-1],
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
@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", ROBOTS)
class TestPromise:
    def test_batch(self, name: str, backend: str, layout: str) -> None:
        x, convert = reference(name), LAYOUTS[layout]
        states, wrench = [convert(s) for s in x.states], [convert(W) for W in x.wrench]
        assert_promised(dynamics(name, backend).inverse_dynamics(*states, wrench=wrench), x.efforts)

    def test_states_one_by_one(self, name: str, backend: str, layout: str) -> None:
        """Each is a row of an array in that layout, and a few are enough where the whole batch is tested too."""
        x, convert = reference(name), LAYOUTS[layout]
        count = STATES if layout == "rows" else 20
        states, wrench = [convert(s) for s in x.states], [convert(W) for W in x.wrench]
        run = dynamics(name, backend).inverse_dynamics
        efforts = [run(*(s[i] for s in states), wrench=tuple(W[i] for W in wrench)) for i in range(count)]
        assert_promised(np.array(efforts).swapaxes(0, 1), x.efforts[:, :count])


@pytest.mark.parametrize("backend", KERNELS)
class TestEachBackend:
    @pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 16, 17])
    def test_batches_of_any_length(self, backend: str, count: int) -> None:
        x = reference("iiwa")
        run = dynamics("iiwa", backend).inverse_dynamics
        assert_promised(run(*x.states[:, :count], wrench=x.wrench[:, :count]), x.efforts[:, :count])

    @pytest.mark.parametrize("given", range(4))
    def test_wrenches_that_are_not_given_are_zero(self, backend: str, given: int) -> None:
        x, run = reference("iiwa"), dynamics("iiwa", backend).inverse_dynamics
        full = x.wrench[:, :9] * (np.arange(3) < given)[:, None, None]
        expected = run(*x.states[:, :9], wrench=full)
        np.testing.assert_array_equal(run(*x.states[:, :9], wrench=full[:given]), expected)
        one = run(*x.states[:, 3], wrench=tuple(full[:given, 3]))
        assert_promised(np.array(one)[:, None], np.array(expected)[:, 3:4])

    def test_a_wrench_for_all_states_beside_one_for_each(self, backend: str) -> None:
        x, run = reference("iiwa"), dynamics("iiwa", backend).inverse_dynamics
        mixed = [x.wrench[0, 0], x.wrench[1, :9], x.wrench[2, 0]]
        spread = [np.tile(x.wrench[0, 0], (9, 1)), x.wrench[1, :9], np.tile(x.wrench[2, 0], (9, 1))]
        states = x.states[:, :9]
        np.testing.assert_array_equal(run(*states, wrench=mixed), run(*states, wrench=spread))

    def test_effort_alone(self, backend: str) -> None:
        x = reference("iiwa")
        tau = dynamics("iiwa", backend).effort(*x.states[:3], wrench=x.wrench[:1])
        assert_promised(tau[None], x.efforts[:1])

    def test_mass_matrix(self, backend: str) -> None:
        x = reference("mixed_chain")
        q, qd = x.states[:2, :50]
        M = dynamics("mixed_chain", backend).mass_matrix(q)
        for i in range(50):
            assert deviation(M[i], equations_of_motion(x.robot, q[i], qd[i]).M[0]) < PROMISED

    def test_partial_derivatives_are_those_of_differences(self, backend: str) -> None:
        """Differences of order 10 leave 1e-16 / 0.01 of the effort."""
        x = reference("mixed_chain")
        run = dynamics("mixed_chain", backend)
        q, qd, qdd = x.states[:3, 0]
        W = x.wrench[:1, 0]
        expected = (
            gradient(lambda v: run.effort(v, qd, qdd, wrench=W), q),
            gradient(lambda v: run.effort(q, v, qdd, wrench=W), qd),
            equations_of_motion(x.robot, q, qd).M[0],
        )
        for partial, desired in zip(run.effort_partials(q, qd, qdd, wrench=W), expected, strict=True):
            assert deviation(partial, desired) < PROMISED

    def test_partial_derivatives_of_a_batch_are_those_of_its_states(self, backend: str) -> None:
        x, run = reference("iiwa"), dynamics("iiwa", backend)
        batch = run.effort_partials(*x.states[:3, :9], wrench=x.wrench[:1, :9])
        for i in range(9):
            one = run.effort_partials(*x.states[:3, i], wrench=x.wrench[:1, i])
            for partial, expected in zip(batch, one, strict=True):
                assert deviation(partial[i], expected) < 1e-14

    @pytest.mark.parametrize("count", [None, 1, 9])
    def test_results_may_overwrite_the_arguments(self, backend: str, count: int | None) -> None:
        x, run = reference("iiwa"), dynamics("iiwa", backend).inverse_dynamics
        states = (x.states[:, 0] if count is None else x.states[:, :count]).copy()
        expected = np.array(run(*states))
        run(*states, out=(states[1], states[0], states[4]))
        np.testing.assert_array_equal(states[[1, 0, 4]], expected)

    def test_many_threads_may_call_at_once(self, backend: str) -> None:
        """Each with a state of its own, and often enough for any buffer that they share to be overwritten."""
        x, run = reference("iiwa"), dynamics("iiwa", backend).inverse_dynamics

        def repeatedly(i: int) -> float:
            return max(deviation(run(*x.states[:, i], wrench=x.wrench[:, i])[0], x.efforts[0, i]) for _ in range(500))

        with ThreadPoolExecutor(8) as pool:
            assert max(pool.map(repeatedly, range(8))) < PROMISED

    def test_many_threads_may_call_with_batches_at_once(self, backend: str) -> None:
        x, run = reference("iiwa"), dynamics("iiwa", backend).inverse_dynamics

        def part(i: int) -> None:
            chosen = slice(100 * i, 100 * i + 100)
            assert_promised(run(*x.states[:, chosen], wrench=x.wrench[:, chosen]), x.efforts[:, chosen])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(part, range(8)))


def test_a_large_batch_over_threads_is_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut in three, none of them a whole number of lanes."""
    monkeypatch.setattr("eom_dynamics.kernel.native._processors", lambda: 3)
    x, run = reference("iiwa"), dynamics("iiwa", "native").inverse_dynamics
    states, wrench = np.tile(x.states, (1, 100, 1)), np.tile(x.wrench, (1, 100, 1))
    states[:, ::STATES] *= 0.5
    efforts = np.array(run(*states, wrench=wrench))
    assert efforts.shape == (3, 100 * STATES, 7)
    expected = np.array(run(*states[:, :STATES], wrench=x.wrench))
    np.testing.assert_array_equal(efforts, np.tile(expected, (1, 100, 1)))
    assert_promised(efforts[:, 1:STATES], x.efforts[:, 1:])


def test_a_wrench_is_shared_by_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eom_dynamics.kernel.native._processors", lambda: 2)
    x, run = reference("iiwa"), dynamics("iiwa", "native").inverse_dynamics
    states = np.tile(x.states, (1, 10, 1))
    expected = run(*states[:, :STATES], wrench=x.wrench[:, 0])
    np.testing.assert_array_equal(run(*states, wrench=x.wrench[:, 0]), np.tile(expected, (1, 10, 1)))
