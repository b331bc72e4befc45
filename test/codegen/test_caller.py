# SPDX-License-Identifier: Apache-2.0
"""The compiled caller: arguments that it takes or passes on, reference counts and memory."""

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import Dynamics, StateError

MOTION = fixed_case("iiwa", 4).motion
WRENCH = np.random.default_rng(5).uniform(-5, 5, (3, 6))


@pytest.fixture(scope="module")
def native() -> Dynamics:
    return Dynamics(fixed_case("iiwa", 0).robot, backend="native")


@pytest.fixture(scope="module")
def general() -> Dynamics:
    return Dynamics(fixed_case("iiwa", 0).robot, backend="numpy")


def test_plain_states_are_not_passed_on(native: Dynamics, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("passed on")

    monkeypatch.setattr("eom_dynamics.codegen.functions.state_arrays", refuse)
    native.inverse_dynamics(*MOTION)
    native.inverse_dynamics(*MOTION, wrench=())
    native.inverse_dynamics(*MOTION, wrench=tuple(WRENCH))
    with pytest.raises(AssertionError, match="passed on"):
        native.inverse_dynamics(*MOTION, wrench=list(WRENCH))


ONES = np.ones(7)
ROWS = np.ones((3, 7))

CALLS: dict[str, Any] = {
    "twice": ((ONES,) * 5, {"q": ONES}),
    "a number": (1.0, ONES, ONES, ONES, ONES),
    "complex": (ONES, ONES, ONES * 1j, ONES, ONES),
    "text": (ONES, ONES, ONES.astype(str), ONES, ONES),
    "no dimension": (np.array(1.0), ONES, ONES, ONES, ONES),
    "a batch and a state": (ROWS, ROWS, ROWS, ROWS, ONES),
    "a batch with NaN": (ROWS, ROWS, ROWS, ROWS, np.vstack([ONES, ONES, ONES * np.nan])),
    "wrenches of two states": ((ROWS,) * 5, {"wrench": (np.ones((2, 6)),)}),
    "a result of float32": ((ONES,) * 5, {"out": (np.empty(7), np.empty(7, np.float32), np.empty(7))}),
    "a read-only result": ((ONES,) * 5, {"out": (np.empty(7), np.empty(7), np.frombuffer(bytes(56)))}),
    "short results": ((ONES,) * 5, {"out": (np.empty(6),) * 3}),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_errors_are_those_without_the_caller(native: Dynamics, general: Dynamics, call: Any) -> None:
    arguments, keywords = call if len(call) == 2 and isinstance(call[1], dict) else (call, {})
    refusals = []
    for dynamics in (native, general):
        with pytest.raises((StateError, TypeError)) as refusal:
            dynamics.inverse_dynamics(*arguments, **keywords)
        refusals.append((refusal.type, str(refusal.value)))
    assert refusals[0] == refusals[1]


def test_keyword_arguments(native: Dynamics) -> None:
    expected = native.inverse_dynamics(*MOTION)
    names = dict(zip(("q", "qd", "qdd", "qddd", "qdddd"), MOTION, strict=True))
    np.testing.assert_array_equal(native.inverse_dynamics(**names), expected)
    q = names.pop("q")
    np.testing.assert_array_equal(native.inverse_dynamics(q, **names), expected)
    np.testing.assert_array_equal(native.inverse_dynamics(q, **names, wrench=()), expected)


def test_results_are_parts_of_one_array_of_their_call(native: Dynamics) -> None:
    """They outlive each other, overlap in nothing, and may be written to."""
    results = native.inverse_dynamics(*MOTION)
    expected = [x.copy() for x in results]
    tau, taud, taudd = results
    assert tau.base is taud.base is taudd.base is not native.inverse_dynamics(*MOTION)[0].base
    del results, taud
    assert tau.flags.carray and tau.flags.aligned
    tau[:] = -1.0
    np.testing.assert_array_equal(taudd, expected[2])


def test_unreferenced_dynamics_are_freed() -> None:
    dynamics = Dynamics(fixed_case("planar_2r", 0).robot, backend="native")
    freed = weakref.ref(dynamics)
    del dynamics
    gc.collect()
    assert freed() is None


def test_caller_outlives_its_dynamics() -> None:
    run = Dynamics(fixed_case("planar_2r", 0).robot, backend="native").inverse_dynamics
    gc.collect()
    assert [x.shape for x in run(*np.ones((5, 2)))] == [(2,)] * 3
    assert [x.shape for x in run(*np.ones((5, 4, 2)))] == [(4, 2)] * 3


def test_extension_modules_name_no_file(native: Dynamics) -> None:
    """They were loaded by a descriptor, whose number is later that of another file, such as a pipe."""
    own = [module for name, module in sys.modules.items() if name.startswith("eom_dynamics_")]
    assert own and not any(hasattr(module, "__file__") for module in own)
