# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: published values, derivatives, batches and arguments."""

import copy
import os
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from differences import deviation
from paths import ROOT

from eom_dynamics import Dynamics, ElasticArm, RobotDescriptionWarning, StateError, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import paper_motion, paper_wrench

METHODS = ("inverse_dynamics", "effort", "mass_matrix", "inverse_dynamics_derivatives")


class Published(NamedTuple):
    """Times (201,), s, and values (201, 7) of the paper's MATLAB code."""

    t: Array
    q: Array
    tau: Array
    taud: Array
    taudd: Array


@pytest.fixture(scope="module")
def published() -> Published:
    rows = np.loadtxt(ROOT / "examples" / "paper.csv.gz", delimiter=",", skiprows=1)
    return Published(rows[:, 0], *np.hsplit(rows[:, 1:], 4))


@pytest.fixture(scope="module")
def iiwa() -> Dynamics:
    return Dynamics(load_robot("iiwa"))


def test_published_efforts_of_the_iiwa(published: Published) -> None:
    """All 201 rows; 1e-13 of a row's largest effort is about five times the rounding error of both programs."""
    with pytest.warns(RobotDescriptionWarning, match="physically inconsistent inertia"):
        robot = load_robot("iiwa", inertia_reference="link")
    motion, wrench = paper_motion().derivatives(published.t), paper_wrench().derivatives(published.t, order=2)
    assert len(published.t) == 201 and deviation(motion[0], published.q) < 1e-14
    efforts = Dynamics(robot).inverse_dynamics(*motion, wrench=wrench)
    for effort, expected in zip(efforts, (published.tau, published.taud, published.taudd), strict=True):
        for row, expected_row in zip(effort, expected, strict=True):
            assert deviation(row, expected_row) < 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_types_of_numbers(iiwa: Dynamics, dtype: Any) -> None:
    states = np.random.default_rng(1).uniform(-3, 3, (5, 7)).astype(dtype)
    np.testing.assert_array_equal(iiwa.inverse_dynamics(*states), iiwa.inverse_dynamics(*states.astype(float)))


class TestOut:
    """Argument ``out`` of each method, for a state, a batch, and an empty batch."""

    @staticmethod
    def call(iiwa: Dynamics, method: str, shape: tuple[int, ...], **keywords: Any) -> tuple[np.ndarray, ...]:
        states = np.random.default_rng(1).uniform(-2, 2, (5, *shape))
        count = {"inverse_dynamics": 5, "mass_matrix": 1}.get(method, 3)
        results = getattr(iiwa, method)(*states[:count], **keywords)
        return results if isinstance(results, tuple) else (results,)

    @pytest.mark.parametrize("shape", [(7,), (0, 7), (9, 7)], ids=str)
    @pytest.mark.parametrize("method", METHODS)
    def test_arrays_are_filled_and_returned(self, iiwa: Dynamics, method: str, shape: tuple[int, ...]) -> None:
        expected = self.call(iiwa, method, shape)
        out = tuple(np.full_like(x, np.nan) for x in expected)
        results = self.call(iiwa, method, shape, out=out)
        assert all(x is y for x, y in zip(results, out, strict=True))
        for x, y in zip(out, expected, strict=True):
            np.testing.assert_array_equal(x, y)

    @pytest.mark.parametrize(
        "spoil",
        [
            *(lambda x: x[:-1], lambda x: x[None], lambda x: x.astype(np.float32), lambda x: x.astype(">f8")),
            *(lambda x: x.astype(int), np.ndarray.tolist, lambda x: np.repeat(x, 2, axis=-1)[..., ::2]),
            *(lambda x: x[::-1], lambda x: np.frombuffer(x.tobytes()).reshape(x.shape)),
        ],
        ids=["short", "one more axis", "float32", "big-endian", "int", "list", "strided", "reversed", "read-only"],
    )
    @pytest.mark.parametrize("method", METHODS)
    def test_unsuitable_array(self, iiwa: Dynamics, method: str, spoil) -> None:
        *good, last = self.call(iiwa, method, (9, 7))
        with pytest.raises(StateError, match=rf"^out\[{len(good)}\] must be a writable C-contiguous float64 array of"):
            self.call(iiwa, method, (9, 7), out=(*good, spoil(last)))

    @pytest.mark.parametrize("method", METHODS)
    def test_wrong_number_of_arrays(self, iiwa: Dynamics, method: str) -> None:
        results = self.call(iiwa, method, (7,))
        for out in ((), (*results, results[0])):
            with pytest.raises(StateError, match=rf"^out must be a sequence of {len(results)} arrays, has {len(out)}"):
                self.call(iiwa, method, (7,), out=out)


def test_results_may_overlap_arguments(iiwa: Dynamics) -> None:
    rng = np.random.default_rng(3)
    rows, others = rng.normal(size=(41, 7)), rng.normal(size=(4, 40, 7))
    expected = iiwa.inverse_dynamics(rows[:40].copy(), *others)
    out = (rows[1:], np.empty((40, 7)), np.empty((40, 7)))
    for effort, desired in zip(iiwa.inverse_dynamics(rows[:40], *others, out=out), expected, strict=True):
        np.testing.assert_array_equal(effort, desired)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_copies(iiwa: Dynamics, copied: Callable[[Any], Any]) -> None:
    states = np.random.default_rng(4).normal(size=(5, 7))
    twin = copied(ElasticArm(iiwa.robot))
    assert twin.dynamics.backend == iiwa.backend
    np.testing.assert_array_equal(twin.feedforward(*states).tau, iiwa.inverse_dynamics(*states)[0])


def test_large_batch_in_a_forked_process(iiwa: Dynamics) -> None:
    states = np.random.default_rng(5).normal(size=(5, 20_000, 7))
    expected = iiwa.inverse_dynamics(*states)[0].sum()  # starts threads before the fork
    child = os.fork()
    if child == 0:
        os._exit(0 if iiwa.inverse_dynamics(*states)[0].sum() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
