# SPDX-License-Identifier: Apache-2.0
"""The compiled caller: keyword arguments, memory of results, and life of callers; test_functions.py has the rest."""

import gc
import sys
import weakref

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import Dynamics

MOTION = fixed_case("iiwa", 4).motion


@pytest.fixture(scope="module")
def native() -> Dynamics:
    return Dynamics(fixed_case("iiwa", 0).robot, backend="native")


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


def test_a_caller_outlives_its_dynamics_which_are_freed_after_it() -> None:
    dynamics = Dynamics(fixed_case("planar_2r", 0).robot, backend="native")
    freed, run = weakref.ref(dynamics), dynamics.inverse_dynamics
    del dynamics
    gc.collect()
    assert [x.shape for x in run(*np.ones((5, 2)))] == [(2,)] * 3
    assert [x.shape for x in run(*np.ones((5, 4, 2)))] == [(4, 2)] * 3
    del run
    gc.collect()
    assert freed() is None


def test_extension_modules_name_no_file(native: Dynamics) -> None:
    """They were loaded by a descriptor, whose number is later that of another file, such as a pipe."""
    own = [module for name, module in sys.modules.items() if name.startswith("eom_dynamics_")]
    assert own and not any(hasattr(module, "__file__") for module in own)
