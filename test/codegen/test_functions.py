# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: stages one after the other, keywords with defaults, named results, refusals and memory."""

import gc
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import Robot, StateError
from eom_dynamics.codegen import functions
from eom_dynamics.codegen.backends import KERNELS, Kernel
from eom_dynamics.codegen.functions import CompiledFunction, Keyword, Signature, Stage, Vector
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.recipe import Recipe
from eom_dynamics.exceptions import KernelError, KernelWarning

ROBOT = fixed_case("mixed_chain", 0).robot
N = ROBOT.n
EFFORTS = ("tau", "taud", "taudd")
STATES = ("q", "qd", "qdd", "qddd", "qdddd")
NOMINAL = np.linspace(100.0, 400.0, N)

Array = np.ndarray
Call = Callable[..., Any]


class Motors(NamedTuple):
    tau: Array
    position: Array
    load: Array


def springs(robot: Robot) -> Program:
    """Position q + tau / k + deflection, and the load (n + 1) with the sum of the entries of tau, taud and taudd."""

    def compute(x: dict[str, list[Any]]) -> Mapping[str, list[Any]]:
        position = [
            q + tau * (1.0 / k) + delta for q, tau, k, delta in zip(x["q"], x["tau"], x["k"], x["delta"], strict=True)
        ]
        load = [a + b + c for a, b, c in zip(x["tau"], x["taud"], x["taudd"], strict=True)]
        return {"position": position, "load": [*load, x["taud"][0] * x["kd"][0]]}

    sizes = dict.fromkeys(("q", *EFFORTS, "k", "kd", "delta"), robot.n)
    return trace("springs", sizes, compute)


SPRINGS = Recipe("springs", springs)


def joint_vectors(*names: str, optional: bool = False, shared: bool = False) -> tuple[Vector, ...]:
    return tuple(Vector(name, (N,), "", optional, shared) for name in names)


WRENCH = Keyword("wrench", tuple(Vector(name, (6,)) for name in ("W", "Wd", "Wdd")))
STIFFNESS = Keyword("stiffness", joint_vectors("k", "kd"), defaults=(NOMINAL, np.zeros(N)))
DEFLECTION = Keyword("deflection", joint_vectors("delta"), alone=True)

SIGNATURE = Signature(
    (*joint_vectors(*STATES[:3]), *joint_vectors(*STATES[3:], optional=True)),
    (Vector("tau", (N,), "joint efforts, N m or N"), Vector("position", (N,)), Vector("load", (N + 1,))),
    (WRENCH, STIFFNESS, DEFLECTION),
    Motors,
)


def kernel(name: str, backend: str) -> Kernel:
    return KERNELS[backend](ROBOT, SPRINGS if name == "springs" else PROGRAMS[name])


def stages(backend: str) -> list[Stage]:
    return [
        Stage(kernel("inverse_dynamics", backend), [*STATES, "W", "Wd", "Wdd"], EFFORTS),
        Stage(kernel("springs", backend), ["q", *EFFORTS, "k", "kd", "delta"], ("position", "load")),
    ]


def motors(backend: str = "native", **options: Any) -> CompiledFunction:
    return CompiledFunction(SIGNATURE, stages(backend), intermediate={"taud": N, "taudd": N}, **options)


@pytest.fixture(scope="module")
def function() -> CompiledFunction:
    return motors()


@pytest.fixture(scope="module")
def fast(function: CompiledFunction) -> Call:
    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("passed on")

    return function.state_call(refuse)


def one_after_the_other(backend: str, count: int, inputs: Mapping[str, Array]) -> Motors:
    rows = {name: x.reshape(-1, x.shape[-1]) for name, x in inputs.items()}
    links, springs = stages(backend)
    efforts = [np.empty((count, N)) for _ in EFFORTS]
    assert links.kernel(count, [rows[name] for name in links.inputs], efforts)
    rows |= dict(zip(EFFORTS, efforts, strict=True))
    position, load = np.empty((count, N)), np.empty((count, N + 1))
    assert springs.kernel(count, [rows[name] for name in springs.inputs], [position, load])
    return Motors(efforts[0], position, load)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def inputs(*samples: int) -> dict[str, Array]:
    joints, wrenches = numbers(8, *samples, N), numbers(3, *samples, 6)
    found = dict(zip((*STATES, "k", "kd", "delta"), joints, strict=True)) | dict(
        zip(("W", "Wd", "Wdd"), wrenches, strict=True)
    )
    return found | {"k": found["k"] + 300.0}


def called(call: Call, x: Mapping[str, Array], **options: Any) -> Motors:
    wrench, stiffness = (x["W"], x["Wd"], x["Wdd"]), (x["k"], x["kd"])
    found: Motors = call(
        *(x[name] for name in STATES), wrench=wrench, stiffness=stiffness, deflection=x["delta"], **options
    )
    return found


def assert_same(found: Motors, expected: Motors, *samples: int) -> None:
    assert type(found) is Motors
    for name, x, y, vector in zip(Motors._fields, found, expected, SIGNATURE.results, strict=True):
        assert x.shape == (*samples, *vector.shape)
        np.testing.assert_array_equal(x, y.reshape(x.shape), err_msg=name)


class TestTwoStages:
    def test_one_state(self, function: CompiledFunction, fast: Call) -> None:
        x = inputs()
        expected = one_after_the_other("native", 1, x)
        assert_same(called(fast, x), expected)
        assert_same(called(function, x), expected)

    @pytest.mark.parametrize("count", [1, 9, 129, 1000, 12_400])
    def test_batch(self, function: CompiledFunction, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A block, parts of blocks, and three threads, also with arrays for all states: the same bits."""
        monkeypatch.setattr("eom_dynamics.codegen.native._processors", lambda: 3)
        x = inputs(count)
        assert_same(called(function, x), one_after_the_other("native", count, x), count)
        shared = {name: x[name][-1] for name in ("W", "Wdd", "kd", "delta")}
        repeated = {name: np.tile(values, (count, 1)) for name, values in shared.items()}
        assert_same(called(function, x | shared), called(function, x | repeated), count)

    @pytest.mark.parametrize("count", [1, 9, 128])
    def test_small_batch(self, function: CompiledFunction, fast: Call, count: int) -> None:
        """Not passed on: packed rows, rows with a space between, and arrays for all states."""
        x = inputs(count)
        expected = one_after_the_other("native", count, x)
        assert_same(called(fast, x), expected, count)
        columns = {name: np.hstack([v, np.full_like(v, np.nan)])[:, : v.shape[1]] for name, v in x.items()}
        assert_same(called(fast, columns), expected, count)
        common = x | {name: x[name][-1] for name in ("W", "Wdd", "kd", "delta")}
        assert_same(called(fast, common), called(function, common), count)
        strided = {name: np.repeat(x[name], 2, axis=1)[:, ::2] for name in STATES}
        for states, wrench in ((x, [x["W"]]), (strided, (x["W"],))):
            with pytest.raises(AssertionError, match="passed on"):
                fast(*(states[name] for name in STATES), wrench=wrench)

    def test_the_other_backend(self, function: CompiledFunction) -> None:
        other = motors("numpy")
        for samples in ((), (300,)):
            x = inputs(*samples)
            for found, expected in zip(called(other.state_call(), x), called(function, x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)

    def test_without_the_compiled_caller(self, function: CompiledFunction, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(*arguments: Any) -> None:
            raise KernelError("no Python headers")

        monkeypatch.setattr(functions, "caller", missing)
        plain = motors()
        with pytest.warns(KernelWarning, match=r"headers.*20"):
            call = plain.state_call()
        for samples in ((), (1000,)):
            assert_same(called(call, inputs(*samples)), called(function, inputs(*samples)), *samples)

    @pytest.mark.parametrize("count", [None, 1, 300])
    def test_results_overwrite_what_a_later_stage_reads(self, function: CompiledFunction, count: int | None) -> None:
        x = inputs() if count is None else inputs(count)
        expected = [y.copy() for y in called(function, x)]
        out = (x["q"], x["k"], np.empty((*x["q"].shape[:-1], N + 1)))
        found = called(function, x, out=out)
        assert all(a is b for a, b in zip(found, out, strict=True))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


class TestArguments:
    def test_omitted_rates_are_zero(self, function: CompiledFunction, fast: Call) -> None:
        q, qd, qdd, jerk, snap = numbers(5, N)
        zero = np.zeros(N)
        expected = function(q, qd, qdd, jerk, zero)
        for call in (function, fast):
            assert_same(call(q, qd, qdd, jerk), expected)
            assert_same(call(q, qd, qdd, jerk, None), expected)
            assert_same(call(q, qd, qdd, None, snap), function(q, qd, qdd, zero, snap))
        batch = function(*numbers(3, 9, N))
        assert_same(batch, function(*numbers(3, 9, N), np.zeros((9, N)), None), 9)

    def test_defaults_of_keywords(self, function: CompiledFunction, fast: Call) -> None:
        x = inputs() | {"kd": np.zeros(N), "delta": np.zeros(N), "Wd": np.zeros(6), "Wdd": np.zeros(6)}
        states = [x[name] for name in STATES]
        for call in (function, fast):
            given = call(*states, wrench=(x["W"],), stiffness=(x["k"],), deflection=None)
            assert_same(given, called(function, x))
            given = call(*states, deflection=x["delta"], stiffness=())
            assert_same(given, called(function, x | {"k": NOMINAL, "W": np.zeros(6)}))

    def test_a_default_that_is_missing(self) -> None:
        keyword = Keyword("deflection", joint_vectors("delta"), alone=True, defaults=(None,))
        signature = Signature(SIGNATURE.arguments, SIGNATURE.results, (WRENCH, STIFFNESS, keyword), Motors)
        needing = CompiledFunction(signature, stages("native"), intermediate={"taud": N, "taudd": N})
        call = needing.state_call(lambda *arguments, **keywords: "general")
        assert call(*numbers(5, N)) == call(*numbers(5, N), deflection=None) == "general"
        assert_same(called(call, inputs()), called(needing, inputs()))
        with pytest.raises(TypeError, match="keyword"):
            needing(*numbers(5, N))

    ONES = np.ones(N)
    CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any], str], ...] = (
        ((ONES,) * 2, {}, "3 to 5 arguments are required, 2 are given"),
        ((ONES,) * 6, {}, "3 to 5 arguments are required, 6 are given"),
        ((ONES,) * 3, {"force": ONES}, "there is no keyword argument force; there is wrench, stiffness, deflection"),
        ((ONES,) * 3, {"q": ONES}, "there is no keyword argument q; there is wrench, stiffness, deflection"),
        ((ONES[:-1],) * 3, {}, "q must have shape (4,) or (N, 4), has (3,)"),
        ((1.0, ONES, ONES), {}, "q must have shape (4,) or (N, 4), has ()"),
        ((ONES, ONES, ONES * 1j), {}, "qdd must be real numbers, is of type complex128"),
        ((np.ones((3, N)),) * 3, {"wrench": (np.ones((2, 6)),)}, "wrench W must have shape (3, 6), has (2, 6)"),
        ((ONES, ONES, np.ones((2, N))), {}, "qdd must have shape (4,), has (2, 4)"),
        ((ONES, None, ONES), {}, "qd must have shape (4,), has ()"),
        ((ONES,) * 3, {"wrench": (np.ones(5),)}, "wrench W must have shape (6,), has (5,)"),
        ((ONES,) * 3, {"wrench": (np.ones(6),) * 4}, "wrench must be a sequence of arrays, at most 3, has 4"),
        ((ONES,) * 3, {"wrench": None}, "wrench must be a sequence of arrays, is None"),
        ((ONES,) * 3, {"stiffness": (ONES, ONES * np.nan)}, "stiffness kd must be finite; entry [0] is nan"),
        ((ONES,) * 3, {"deflection": ONES * np.inf}, "deflection must be finite; entry [0] is inf"),
        ((ONES,) * 3, {"deflection": (ONES,)}, "deflection must have shape (4,), has (1, 4)"),
        ((ONES, ONES, ONES * np.inf), {}, "qdd must be finite; entry [0] is inf"),
        ((np.ones((200, N)),) * 4 + (np.full((200, N), np.nan),), {}, "qdddd must be finite; entry [0, 0] is nan"),
    )

    @pytest.mark.parametrize(("arguments", "keywords", "message"), CALLS, ids=[call[2] for call in CALLS])
    def test_errors(self, arguments: Any, keywords: Any, message: str, function: CompiledFunction) -> None:
        for call in (function, function.state_call()):
            with pytest.raises((StateError, TypeError)) as error:
                call(*arguments, **keywords)
            assert str(error.value) == message


class TestResultsThatAreNotFinite:
    def test_of_a_stage_for_another(self, function: CompiledFunction, fast: Call) -> None:
        large = [np.full(N, 1e308)] * 5
        with pytest.raises(AssertionError, match="passed on"):
            fast(*large)
        for states in (large, [np.tile(x, (200, 1)) for x in large]):
            with np.errstate(all="ignore"), pytest.raises(StateError, match="numbers too large"):
                function(*states)

    @pytest.mark.parametrize("backend", KERNELS)
    def test_of_the_function(self, backend: str) -> None:
        """Stiffness zero: refused on request, in one state or one of a batch."""
        seen: list[Mapping[str, Array]] = []

        def refuse(given: Mapping[str, Array]) -> None:
            seen.append(given)
            raise StateError("joint_2: stiffness must not be zero")

        some, all_, plain = (
            motors(backend),
            motors(backend, finite_results=True, refuse=refuse),
            motors(backend, finite_results=True),
        )
        for samples, place in (((), (2,)), ((1,), (0, 2)), ((300,), (299, 2)), ((300,), (3, 2))):
            x = inputs(*samples)
            assert_same(called(all_.state_call(), x), called(some, x), *samples)
            x["k"][place] = 0.0
            with np.errstate(all="ignore"):
                assert np.isinf(called(some.state_call(), x).position[place])
                with pytest.raises(StateError, match=r"joint_2.*stiffness"):
                    called(all_.state_call(), x)
                with pytest.raises(StateError, match="numbers too large"):
                    called(plain.state_call(), x)
            np.testing.assert_array_equal(seen[-1]["k"], x["k"])
            assert seen[-1]["q"].shape == (*samples, N)


class TestResults:
    def test_alone(self) -> None:
        signature = Signature(joint_vectors("q"), (Vector("U", ()),), result_type=None)
        energy = CompiledFunction(signature, kernel("potential_energy", "native"))
        q = numbers(9, N)
        one = [energy.state_call()(x) for x in q]
        assert all(type(x) is np.ndarray and x.shape == () for x in (*one, energy(q[0])))
        np.testing.assert_array_equal(one, energy(q))

    def test_named_ones_are_as_those_of_python(self, function: CompiledFunction, fast: Call) -> None:
        found = called(fast, inputs())
        assert found.position is found[1] and found._replace(load=found.tau).load is found.tau
        assert repr(found) == repr(called(function, inputs()))
        assert gc.is_tracked(found)
        with pytest.raises(TypeError, match="unhashable"):
            hash(found)


class TestTables:
    def test_stages_that_do_not_fit(self) -> None:
        links, springs = stages("native")
        between = {"taud": N, "taudd": N}
        for given, vectors, message in (
            ([links, springs], {}, "a function has no vector taud"),
            ([links, springs], between | {"q": N}, "two vectors of a function have the same name"),
            ([springs, links], between, "a stage reads a value before it is written: tau"),
            ([links], between, "each result must be written by one stage"),
        ):
            with pytest.raises(ValueError, match=message):
                CompiledFunction(SIGNATURE, given, intermediate=vectors)

    def test_more_vectors_than_the_caller_supports(self) -> None:
        count = 40
        names = [f"x{k}" for k in range(count)]

        def add(robot: Robot) -> Program:
            return trace("add", dict.fromkeys(names, 1), lambda x: {"sum": [sum((v[0] for v in x.values()), 0.0)]})

        signature = Signature(tuple(Vector(name, (1,)) for name in names), (Vector("sum", (1,)),), result_type=None)
        function = CompiledFunction(signature, KERNELS["native"](ROBOT, Recipe("add", add)))
        assert function.state_call() is function
        np.testing.assert_array_equal(function(*[np.ones(1)] * count), [count])
        np.testing.assert_array_equal(function(*[np.ones((9, 1))] * count), np.full((9, 1), count))


class TestMemory:
    def test_calls_do_not_leak(self, function: CompiledFunction, fast: Call) -> None:
        x = {name: v.copy() for name, v in inputs().items()}
        batch = {name: v.copy() for name, v in inputs(9).items()}
        refused, soft = motors(finite_results=True).state_call(lambda *_, **__: None), x | {"k": np.zeros(N)}
        kept = [*x.values(), *batch.values(), soft["k"], Motors, NOMINAL, None]

        def call(times: int) -> None:
            for _ in range(times):
                called(fast, x)
                called(refused, soft)
                called(function, batch)
                called(fast, batch)
                fast(x["q"], x["qd"], x["qdd"], None, x["qdddd"], deflection=None)

        call(10)
        counts = [sys.getrefcount(v) for v in kept]
        call(1000)
        later = [sys.getrefcount(v) for v in kept]
        assert later[:-1] == counts[:-1]
        assert abs(later[-1] - counts[-1]) < 100  # None, which others also refer to
