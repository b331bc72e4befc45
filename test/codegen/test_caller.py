# SPDX-License-Identifier: Apache-2.0
"""Compiled callers of methods: results, lifetimes, and declared arguments, which equal the methods' arguments."""

import gc
import inspect
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation

from eom_dynamics import Dynamics, FloatingBase, StateError
from eom_dynamics.codegen.programs import WITH_PAYLOAD
from eom_dynamics.codegen.state_method import _StateMethod
from eom_dynamics.robot import Inertial

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
    """They were loaded by a descriptor; its number may later belong to another file, such as a pipe."""
    own = [module for name, module in sys.modules.items() if name.startswith("eom_dynamics_")]
    assert own and not any(hasattr(module, "__file__") for module in own)


ROBOT = replace(fixed_case("planar_2r", 0).robot, base=Inertial(5.0, np.zeros(3), np.eye(3)))
POSE = np.eye(4)

Array = np.ndarray


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-1, 1, shape)


@pytest.mark.parametrize("owner", [Dynamics, FloatingBase])
def test_declared_arguments_are_those_of_the_methods(owner: type) -> None:
    subject = owner(ROBOT)
    for name in [name for name, method in vars(owner).items() if isinstance(method, _StateMethod)]:
        signature, parameters = subject.signature(name), inspect.signature(getattr(owner, name)).parameters
        by_position = [x for x in parameters.values() if x.kind is x.POSITIONAL_OR_KEYWORD][1:]
        assert [x.name for x in by_position] == [vector.name for vector in signature.arguments]
        assert [x.default is None for x in by_position] == [vector.optional for vector in signature.arguments]
        by_keyword = {x.name for x in parameters.values() if x.kind is x.KEYWORD_ONLY}
        # With a payload, it is another program.
        whole = subject.signature(name + WITH_PAYLOAD) if "payload" in by_keyword else signature
        assert by_keyword - {"out", "added_inertia"} == {keyword.name for keyword in whole.keywords}
        assert all(about for _, _, about in whole.table())


@pytest.mark.parametrize("owner", [Dynamics, FloatingBase])
def test_results_of_every_method_are_those_declared_on_each_backend(
    owner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one state, by the compiled caller and without, and for a batch; numbers equal NumPy's programs."""
    monkeypatch.setenv("EOM_DYNAMICS_CFLAGS", "-O0")
    subject, plain = (owner(ROBOT, backend=backend) for backend in ("native", "numpy"))
    for name in [name for name, method in vars(owner).items() if isinstance(method, _StateMethod)]:
        signature, states = subject.signature(name), {}
        options = {"specific_force": (np.ones(3),)} if name == "imu_efforts" else {}
        for samples in ((), (3,)):
            arguments = [
                np.tile(POSE, (*samples, 1, 1)) if x.name == "pose" else np.tile(numbers(*x.shape), (*samples, 1))
                for x in signature.arguments
            ]
            batch = {key: [np.tile(x, (*samples, 1)) for x in value] for key, value in options.items()}
            for backend, convert in (
                (subject, list),
                (subject, lambda values: [x.tolist() for x in values]),
                (plain, list),
            ):
                found = getattr(backend, name)(*convert(arguments), **(batch if samples else options))
                found = found if isinstance(found, tuple) else (found,)
                assert [x.shape for x in found] == [(*samples, *x.shape) for x in signature.results]
                one = states.setdefault("one", found)
                for x, y in zip(found, one, strict=True):
                    assert deviation(x, np.broadcast_to(y, x.shape), floor=1.0) < 1e-13, name


def test_a_specific_force_is_required_by_the_compiled_caller_too() -> None:
    """Zero would be free fall."""
    floating, states = FloatingBase(ROBOT), numbers(3, 2)
    for given in ((), None):
        with pytest.raises(StateError, match=r"specific_force.*sequence"):
            floating.imu_efforts(*states, specific_force=given)
    force = (np.array([0.0, 0.0, 9.8]),)
    for found, expected in zip(
        floating.imu_efforts(*states, specific_force=force),
        floating.imu_efforts(*states, specific_force=list(force)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
