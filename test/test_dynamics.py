# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: published values, derivatives, batches and arguments."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from chains import FIXED, fixed_case
from differences import derivative, deviation, polynomial_motion
from paths import CONFIG, ROOT

from eom_dynamics import (
    Dynamics,
    ElasticArm,
    Robot,
    RobotDescriptionWarning,
    StateError,
    equations_of_motion,
    load_robot,
)
from eom_dynamics.arrays import Array
from eom_dynamics.states import STATE_NAMES
from eom_dynamics.trajectory import paper_motion, paper_wrench

WRENCH = np.random.default_rng(5).uniform(-5, 5, (3, 6))
METHODS = ("inverse_dynamics", "effort", "mass_matrix", "inverse_dynamics_derivatives")


@pytest.fixture(scope="module", params=FIXED)
def case(request: pytest.FixtureRequest):
    """A robot in a random state."""
    return fixed_case(request.param, 4)


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


def iiwa_about_link_by_argument(folder: Path) -> Robot:
    return load_robot("iiwa", inertia_reference="link")


def iiwa_about_link_by_file(folder: Path) -> Robot:
    text = (CONFIG / "iiwa.yaml").read_text()
    assert "inertia_reference: com" in text
    path = folder / "iiwa_about_link.yaml"
    path.write_text(text.replace("inertia_reference: com", "inertia_reference: link"))
    return load_robot(path)


@pytest.mark.parametrize("load", [iiwa_about_link_by_argument, iiwa_about_link_by_file])
def test_published_efforts_of_the_iiwa(published: Published, tmp_path: Path, load) -> None:
    """All 201 rows; 1e-13 of a row's largest effort is about five times the rounding error of both programs."""
    with pytest.warns(RobotDescriptionWarning, match="physically inconsistent inertia"):
        robot = load(tmp_path)
    motion, wrench = paper_motion().derivatives(published.t), paper_wrench().derivatives(published.t, order=2)
    efforts = Dynamics(robot).inverse_dynamics(*motion, wrench=wrench)
    assert len(published.t) == 201
    for effort, expected in zip(efforts, (published.tau, published.taud, published.taudd), strict=True):
        for row, expected_row in zip(effort, expected, strict=True):
            assert deviation(row, expected_row) < 1e-13


def test_published_motion(published: Published) -> None:
    assert deviation(paper_motion().derivatives(published.t)[0], published.q) < 1e-14


def test_inertia_about_the_centre_of_mass(published: Published) -> None:
    """As in the paper's table and the packaged file, but not in its figures, which take it about the link frame."""
    motion, wrench = paper_motion().derivatives(published.t), paper_wrench().derivatives(published.t, order=2)
    tau, _, _ = Dynamics(load_robot("iiwa")).inverse_dynamics(*motion, wrench=wrench)
    assert deviation(tau, published.tau) > 1e-3


def test_rates_agree_with_differences_of_efforts(case) -> None:
    """Differences have an error of about 1e-13."""
    dynamics = Dynamics(case.robot)
    motion, wrench = polynomial_motion(case.motion), polynomial_motion(WRENCH)
    efforts = dynamics.inverse_dynamics(*case.motion, wrench=WRENCH)
    rates = derivative(lambda t: np.array(dynamics.inverse_dynamics(*motion(t), wrench=wrench(t))[:2]))
    assert deviation(efforts[1], rates[0]) < 1e-12
    assert deviation(efforts[2], rates[1]) < 1e-12


def test_efforts_agree_with_the_closed_form(case) -> None:
    efforts = Dynamics(case.robot).inverse_dynamics(*case.motion, wrench=WRENCH)
    expected = equations_of_motion(case.robot, *case.motion[:4], wrench=WRENCH).efforts(case.motion[4])
    for effort, desired in zip(efforts, expected, strict=True):
        assert deviation(effort, desired) < 1e-13


def test_robot_at_rest(iiwa: Dynamics) -> None:
    q, zero = fixed_case("iiwa", 0).motion[0], np.zeros(7)
    tau, taud, taudd = iiwa.inverse_dynamics(q, zero, zero, zero, zero)
    expected = equations_of_motion(iiwa.robot, q, zero).gravity[0]
    assert deviation(tau, expected) < 1e-14
    assert not np.any(taud) and not np.any(taudd)


@pytest.mark.parametrize("samples", [0, 1, 2, 17])
def test_batches(iiwa: Dynamics, samples: int) -> None:
    rng = np.random.default_rng(samples)
    states, wrench = rng.uniform(-2, 2, (5, samples, 7)), rng.uniform(-5, 5, (3, samples, 6))
    efforts = iiwa.inverse_dynamics(*states, wrench=wrench)
    assert [x.shape for x in efforts] == [(samples, 7)] * 3
    for i in range(samples):
        one = iiwa.inverse_dynamics(*states[:, i], wrench=wrench[:, i])
        for effort, expected in zip(efforts, one, strict=True):
            assert deviation(effort[i], expected) < 1e-13


def test_one_wrench_for_a_batch(iiwa: Dynamics) -> None:
    states = np.random.default_rng(0).uniform(-2, 2, (5, 4, 7))
    once = iiwa.inverse_dynamics(*states, wrench=WRENCH)
    repeated = iiwa.inverse_dynamics(*states, wrench=np.repeat(WRENCH[:, None], 4, axis=1))
    np.testing.assert_array_equal(once, repeated)


def test_omitted_wrenches_are_zero(iiwa: Dynamics) -> None:
    motion, zero = fixed_case("iiwa", 4).motion, np.zeros(6)
    np.testing.assert_array_equal(
        iiwa.inverse_dynamics(*motion, wrench=WRENCH[:1]),
        iiwa.inverse_dynamics(*motion, wrench=[WRENCH[0], zero, zero]),
    )
    np.testing.assert_array_equal(iiwa.inverse_dynamics(*motion), iiwa.inverse_dynamics(*motion, wrench=[zero] * 3))


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        np.asfortranarray,
        lambda x: x.astype(">f8"),
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        lambda x: np.flip(np.flip(x, -1).copy(), -1),
    ],
    ids=["list", "column-major", "big-endian", "strided", "reversed"],
)
@pytest.mark.parametrize("shape", [(7,), (3, 7)], ids=["state", "batch"])
def test_memory_layouts(iiwa: Dynamics, convert, shape: tuple[int, ...]) -> None:
    states = np.random.default_rng(1).uniform(-2, 2, (5, *shape))
    expected = iiwa.inverse_dynamics(*states)
    np.testing.assert_array_equal(iiwa.inverse_dynamics(*(convert(x) for x in states)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_types_of_numbers(iiwa: Dynamics, dtype: Any) -> None:
    states = np.random.default_rng(1).uniform(-3, 3, (5, 7)).astype(dtype)
    np.testing.assert_array_equal(iiwa.inverse_dynamics(*states), iiwa.inverse_dynamics(*states.astype(float)))


def test_arguments_are_not_modified(iiwa: Dynamics) -> None:
    states, wrench = np.random.default_rng(1).uniform(-2, 2, (5, 3, 7)), np.ones((3, 3, 6))
    states.flags.writeable = wrench.flags.writeable = False
    iiwa.inverse_dynamics(*states, wrench=wrench)


def test_results_are_new_arrays(iiwa: Dynamics) -> None:
    motion = fixed_case("iiwa", 4).motion
    first = iiwa.inverse_dynamics(*motion)
    kept = np.copy(first)
    first[0][:] = 0
    second = iiwa.inverse_dynamics(*motion)
    np.testing.assert_array_equal(second, kept)
    assert all(x.dtype == np.float64 and x.flags.writeable for x in second)


class TestOut:
    """Argument ``out`` of each method, for a state, a batch, and an empty batch."""

    @staticmethod
    def call(iiwa: Dynamics, method: str, shape: tuple[int, ...], **keywords: Any) -> tuple[np.ndarray, ...]:
        states = np.random.default_rng(1).uniform(-2, 2, (5, *shape))
        count = {"inverse_dynamics": 5, "mass_matrix": 1}.get(method, 3)
        results = getattr(iiwa, method)(*states[:count], **keywords)
        return results if isinstance(results, tuple) else (results,)

    @pytest.mark.parametrize("shape", [(7,), (0, 7), (1, 7), (9, 7)], ids=str)
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
            lambda x: x[:-1],
            lambda x: x[None],
            lambda x: x.astype(np.float32),
            lambda x: x.astype(">f8"),
            lambda x: x.astype(int),
            lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
            lambda x: x[::-1],
            lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
        ],
        ids=["short", "one more axis", "float32", "big-endian", "int", "strided", "reversed", "read-only"],
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


def test_unknown_backend(iiwa: Dynamics) -> None:
    with pytest.raises(ValueError, match=r"native, casadi, numpy.*'fortran'"):
        Dynamics(iiwa.robot, backend="fortran")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda shape: np.where(np.arange(7) == 4, np.nan, np.zeros(shape)), "must be finite"),
        (lambda shape: np.where(np.arange(7) == 4, -np.inf, np.zeros(shape)), "must be finite"),
        (lambda shape: np.zeros((*shape[:-1], 6)), "must have shape"),
        (lambda shape: np.zeros((*shape[:-1], 0)), "must have shape"),
        (lambda shape: np.zeros((2, 3, 7)), "must have shape"),
        (lambda shape: np.full(shape, "x").tolist(), "must be real numbers"),
        (lambda shape: [[0.0] * 7, [0.0]], "is not an array"),
    ],
    ids=["nan", "inf", "short", "empty", "three axes", "text", "ragged"],
)
@pytest.mark.parametrize("shape", [(7,), (3, 7)], ids=["state", "batch"])
def test_bad_argument(iiwa: Dynamics, shape: tuple[int, ...], bad: Callable[..., Any], message: str) -> None:
    """Each of q … qdddd in turn."""
    for which, name in enumerate(STATE_NAMES):
        arguments: list[Any] = [np.zeros(shape)] * 5
        arguments[which] = bad(shape)
        with pytest.raises(StateError, match=rf"^{name} {message}"):
            iiwa.inverse_dynamics(*arguments)


def test_states_and_batches_mixed(iiwa: Dynamics) -> None:
    one, many = np.zeros(7), np.zeros((3, 7))
    with pytest.raises(StateError, match=r"^qd\b.*shape"):
        iiwa.inverse_dynamics(many, one, many, many, many)
    with pytest.raises(StateError, match=r"^qdd\b.*shape"):
        iiwa.inverse_dynamics(one, one, many, one, one)
    with pytest.raises(StateError, match=r"^qddd\b.*shape"):
        iiwa.inverse_dynamics(many, many, many, np.zeros((2, 7)), many)


@pytest.mark.parametrize("which", range(3), ids=["W", "Wd", "Wdd"])
@pytest.mark.parametrize(
    ("samples", "bad"),
    [
        (None, np.zeros(5)),
        (None, np.zeros((1, 6))),
        (None, [0.0, 0.0, np.nan, 0.0, 0.0, 0.0]),
        (None, 1.0),
        (3, np.zeros((2, 6))),
        (3, np.zeros((3, 5))),
        (3, np.full((3, 6), np.inf)),
        (3, np.zeros(3)),
    ],
)
def test_bad_wrench(iiwa: Dynamics, which: int, samples: int | None, bad: Any) -> None:
    state = np.zeros(7) if samples is None else np.zeros((samples, 7))
    wrench: list[Any] = [np.zeros(6)] * 3
    wrench[which] = bad
    with pytest.raises(StateError, match=rf"^wrench {('W', 'Wd', 'Wdd')[which]}\b"):
        iiwa.inverse_dynamics(*[state] * 5, wrench=wrench)


def test_attributes(iiwa: Dynamics) -> None:
    assert iiwa.backend in ("native", "casadi", "numpy")
    assert iiwa.robot.name == "iiwa"


def test_results_may_overlap_arguments(iiwa: Dynamics) -> None:
    rng = np.random.default_rng(3)
    rows, others = rng.normal(size=(41, 7)), rng.normal(size=(4, 40, 7))
    expected = iiwa.inverse_dynamics(rows[:40].copy(), *others)
    out = (rows[1:], np.empty((40, 7)), np.empty((40, 7)))
    for effort, desired in zip(iiwa.inverse_dynamics(rows[:40], *others, out=out), expected, strict=True):
        np.testing.assert_array_equal(effort, desired)


def test_arguments_of_the_wrong_type(iiwa: Dynamics) -> None:
    states = [np.zeros(7)] * 5
    with pytest.raises(StateError, match=r"^wrench must be a sequence of the wrench and its"):
        iiwa.inverse_dynamics(*states, wrench=None)  # type: ignore[arg-type]
    with pytest.raises(StateError, match=r"^out\[0\] must be a writable"):
        iiwa.inverse_dynamics(*states, out=[[0.0] * 7] * 3)  # type: ignore[list-item]
    with pytest.raises(StateError, match=r"^wrench W\b"):
        iiwa.inverse_dynamics(*[np.zeros((0, 7))] * 5, wrench=(np.zeros(5),))


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


def test_documentation_of_the_compiled_method(iiwa: Dynamics) -> None:
    assert iiwa.inverse_dynamics.__doc__ == Dynamics.inverse_dynamics.__doc__
    bound = [x for name, x in inspect.signature(Dynamics.inverse_dynamics).parameters.items() if name != "self"]
    assert list(inspect.signature(iiwa.inverse_dynamics).parameters.values()) == bound


def test_method_of_the_class(iiwa: Dynamics) -> None:
    """The method itself, which an instance calls for all arguments that its compiled caller does not take."""
    states = np.random.default_rng(6).normal(size=(5, 7))
    np.testing.assert_array_equal(Dynamics.inverse_dynamics(iiwa, *states), iiwa.inverse_dynamics(*states))


@pytest.mark.parametrize("use", [Dynamics, ElasticArm])
def test_name_in_place_of_a_robot(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match="must be a Robot, as returned by load_robot, is 'iiwa'"):
        use("iiwa")
