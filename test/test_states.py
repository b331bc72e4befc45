# SPDX-License-Identifier: Apache-2.0
"""Validation of states and wrenches, and its error messages."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import StateError
from eom_dynamics.states import SYMBOLIC, joint_states, joint_vectors, wrenches

INF, NAN = float("inf"), float("nan")
ZEROS = np.zeros(2)

VECTORS = [
    (([0.0], ZEROS), "q must have shape (2,), has (1,)"),
    ((ZEROS, [0.0, 0.0, 0.0]), "qd must have shape (2,), has (3,)"),
    ((ZEROS, 0.0), "qd must have shape (2,), has ()"),
    ((ZEROS, ZEROS, [[0.0, 0.0]]), "qdd must have shape (2,), has (1, 2)"),
    ((ZEROS, ZEROS, ZEROS, [0.0, NAN]), "qddd must be finite; entry [1] is nan"),
    ((ZEROS, ZEROS, ZEROS, ZEROS, [-INF, 0.0]), "qdddd must be finite; entry [0] is -inf"),
    ((*[ZEROS] * 5, [0.0]), "q, derivative 5, must have shape (2,), has (1,)"),
    (([[1.0, 2.0], [3.0]],), "q is not an array of numbers"),
    ((["a", "b"],), "q must be real numbers, is of type <U1"),
    (([1j, 0.0],), "q must be real numbers, is of type complex128"),
]
STATES = [
    ((0.0,), "q must have shape (2,) or (N, 2), has ()"),
    ((np.zeros((4, 3)),), "q must have shape (2,) or (N, 2), has (4, 3)"),
    ((np.zeros((1, 4, 2)),), "q must have shape (2,) or (N, 2), has (1, 4, 2)"),
    ((np.zeros((4, 2)), ZEROS), "qd must have shape (4, 2), has (2,)"),
    ((ZEROS, np.zeros((1, 2))), "qd must have shape (2,), has (1, 2)"),
    ((np.zeros((4, 2)), np.zeros((3, 2))), "qd must have shape (4, 2), has (3, 2)"),
    ((np.zeros((2, 2)), [[0.0, 0.0], [0.0, INF]]), "qd must be finite; entry [1, 1] is inf"),
    ((ZEROS, [None, 0.0]), "qd must be real numbers, is of type object"),
    ((sp.symbols("q_1 q_2"),), f"q is symbolic: {SYMBOLIC}"),
]
WRENCHES = [
    (([0.0] * 5,), (), "wrench W must have shape (6,), has (5,)"),
    ((np.zeros(6), np.zeros((1, 6))), (), "wrench Wd must have shape (6,), has (1, 6)"),
    (([0.0] * 5 + [NAN],), (), "wrench W must be finite; entry [5] is nan"),
    (np.zeros(6), (), "wrench W must have shape (6,), has ()"),
    ((np.zeros(6), np.zeros(6), np.zeros((3, 6))), (4,), "wrench Wdd must have shape (4, 6), has (3, 6)"),
    ((np.zeros((4, 5)),), (4,), "wrench W must have shape (4, 6), has (4, 5)"),
    ((np.zeros(4),), (4,), "wrench W must have shape (6,), has (4,)"),
    (([[0.0] * 6, [0.0]],), (2,), "wrench W is not an array of numbers"),
]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        *((partial(joint_vectors, 2, *vectors), message) for vectors, message in VECTORS),
        *((partial(joint_states, 2, *vectors), message) for vectors, message in STATES),
        *((partial(wrenches, wrench, 3, samples=samples), message) for wrench, samples, message in WRENCHES),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_errors(check: Callable[[], object], message: str) -> None:
    with pytest.raises(StateError) as error:
        check()
    assert str(error.value) == message


@pytest.mark.parametrize(
    "vector",
    [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.int8), np.array([1, 2], dtype=np.float32), np.arange(1, 5)[:2]],
    ids=["list", "tuple", "int8", "float32", "view"],
)
def test_conversion_to_double_precision(vector: Any) -> None:
    (array,) = joint_vectors(2, vector)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, [1, 2])


def test_symbols_are_unchanged() -> None:
    symbols = sp.symbols("q_1 q_2")
    (array,) = joint_vectors(2, symbols)
    assert tuple(array) == symbols


@pytest.mark.parametrize("shape", [(2,), (0, 2), (1, 2), (5, 2)], ids=str)
def test_states_and_batches(shape: tuple[int, ...]) -> None:
    assert [x.shape for x in joint_states(2, np.ones(shape), np.ones(shape))] == [shape, shape]


def test_omitted_wrenches_are_zero() -> None:
    W, Wd, Wdd = wrenches([np.ones(6)], 3)
    np.testing.assert_array_equal([W, Wd, Wdd], [np.ones(6), np.zeros(6), np.zeros(6)])


def test_wrench_for_all_samples() -> None:
    W, Wd = wrenches([np.ones(6), np.ones((4, 6))], 2, samples=(4,))
    assert W.shape == Wd.shape == (4, 6)
    assert np.all(W == 1)
