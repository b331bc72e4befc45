# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of the loop: on any stream they find what those of the reference find."""

import ctypes
import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot, succeed
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.checks import Checks, Settings

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.loop.control_loop import Refusal
from eom_dynamics.loop.headers import loop_headers
from eom_dynamics.loop.settings import CHECK_POLICIES
from eom_dynamics.robot.model import Limits

pytestmark = pytest.mark.skipif(not (COMPILERS and shutil.which("c++")), reason="no C++ compiler is installed")

DRIVER = """
#include <eom/plausibility.hpp>

struct Robot {
    using Scalar = @scalar@;
    static constexpr std::size_t joints = 3, motors = 1, tools = 1;
    static constexpr std::array<Scalar, joints> nominal_stiffness{};
    static constexpr std::array<Scalar, motors> settled_friction{};
    static std::size_t joint_count() { return 2; } // and a place without a joint
    struct Ends {
        std::array<Scalar, joints> qd, qdd, qddd;
    };
    static inline Ends upper;
};

static eom::PlausibilityChecks<Robot> checks;
static eom::LoopCounts counts;
static eom::Finding found;

static eom::Setpoint<Robot> setpoint(const double *x)
{
    eom::Setpoint<Robot> of;
    for (auto *row : {&of.q, &of.qd, &of.qdd, &of.qddd, &of.qdddd})
        for (std::size_t i = 0; i < 2; ++i)
            (*row)[i] = static_cast<Robot::Scalar>(*x++);
    return of;
}

extern "C" {

void begin(const int *policies, double tolerance, int window, int order, const double *limits)
{
    for (auto *row : {&Robot::upper.qd, &Robot::upper.qdd, &Robot::upper.qddd})
        for (std::size_t i = 0; i < 2; ++i)
            (*row)[i] = static_cast<Robot::Scalar>(*limits++);
    eom::LoopSettings settings;
    settings.stamp_check = static_cast<eom::CheckPolicy>(policies[0]);
    settings.jump_check = static_cast<eom::CheckPolicy>(policies[1]);
    settings.consistency_check = static_cast<eom::CheckPolicy>(policies[2]);
    settings.consistency_tolerance = tolerance;
    settings.consistency_window = window;
    settings.consistency_order = order;
    checks.configure(settings);
    checks.restart();
    counts = {};
    found = {};
}

int judge(std::int64_t stamp, const double *x, double *numbers)
{
    const auto refusal = checks.judge(stamp, setpoint(x), counts, found);
    for (const auto count : {counts.suspect_stamps, counts.jumps, counts.inconsistent, counts.without_stamp})
        *numbers++ = static_cast<double>(count);
    for (const auto place : {static_cast<std::size_t>(found.check), found.field, found.joint, found.joints})
        *numbers++ = static_cast<double>(place);
    for (const double number : {found.time, found.step, found.allowed, found.difference, found.factor})
        *numbers++ = number;
    return static_cast<int>(refusal);
}

void answered(std::int64_t stamp, const double *x) { checks.answered(stamp, setpoint(x)); }

void moved(const double *x) { checks.moved(setpoint(x)); }

void restart() { checks.restart(); }
}
"""

COUNTS = ("stamps", "jumps", "consistency", "without stamp")
REFUSALS = {"": "none", "stamps": "suspect_stamp", "jumps": "jump", "consistency": "inconsistent"}


@pytest.fixture(scope="module", params=["double", "float"])
def checks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("plausibility")
    for name, text in loop_headers().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "driver.cpp").write_text(DRIVER.replace("@scalar@", request.param))
    strict = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-DEOM_EIGEN=0")
    succeed(["c++", *strict, "-Iinclude", "-fPIC", "-shared", "driver.cpp", "-o", "driver.so"], folder)
    return SimpleNamespace(library=ctypes.CDLL(str(folder / "driver.so")), scalar=request.param)


def _pointer(x: Array) -> Any:
    return x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def limited() -> ElasticArm:
    first, second = robot("planar_2r").joints
    first = replace(first, limits=Limits(velocity=4.0, acceleration=50.0, jerk=2000.0))
    return ElasticArm(replace(robot("planar_2r"), joints=(first, replace(second, limits=Limits(velocity=6.0)))))


ARM = limited()
LIMITS = np.ascontiguousarray(LimitCheck(ARM).rate_limits)
FAULTS = ("none", "velocity", "sign", "swapped", "jerk", "jump", "both")
STAMPS = ("advance", "repeat", "back", "reset", "none", "pause")
EVENTS = ("answer", "refuse", "move", "restart")

segment = st.tuples(st.integers(1, 25), st.sampled_from(FAULTS), st.sampled_from(STAMPS), st.sampled_from(EVENTS))


def spoiled(state: Array, fault: str) -> Array:
    state = state.copy()
    if fault in ("velocity", "both"):
        state[1, 0] = np.degrees(state[1, 0])
    if fault == "sign":
        state[2] *= -1.0
    if fault == "swapped":
        state[1:3] = state[2:0:-1]
    if fault in ("jerk", "both"):
        state[3, 1] = 0.0
    if fault == "jump":
        state[0, 1] += 0.3
    return state


@settings(max_examples=100)
@given(
    segments=st.lists(segment, min_size=1, max_size=12),
    policies=st.tuples(*[st.sampled_from(CHECK_POLICIES)] * 3),
    tolerance=st.floats(0.02, 0.5),
    window=st.integers(5, 12),
    order=st.integers(1, 4),
    frequency=st.floats(0.5, 40.0),
    size=st.sampled_from((0.0, 1e-9, 0.3, 20.0, 2.0**70, 2.0**800)),
)
def test_they_find_what_the_reference_finds(
    checks: Any,
    segments: list[tuple[int, str, str, str]],
    policies: tuple[str, str, str],
    tolerance: float,
    window: int,
    order: int,
    frequency: float,
    size: float,
) -> None:
    size = min(size, 2.0**70) if checks.scalar == "float" else size
    kept = np.float32 if checks.scalar == "float" else float
    expected = Checks(LIMITS, Settings(*policies, tolerance, window, order))
    library = checks.library
    numbers = (ctypes.c_int * 3)(*map(CHECK_POLICIES.index, policies))
    library.begin(numbers, ctypes.c_double(tolerance), window, order, _pointer(LIMITS))
    now, k = 1_700_000_000_000_000_000, 0
    for count, fault, stamps, event in segments:
        for j in range(count):
            k += 1
            step = {"repeat": 0, "back": -3_000_000, "reset": -(10**9), "pause": 10**8 + 1}.get(stamps, 10**6)
            now += step if j == 0 else 10**6
            stamp = 0 if stamps == "none" else now
            w, t = frequency * np.array([1.0, 1.3]), 1e-3 * k
            state = np.array([size * w**i * np.sin(w * t + 1.0 + i * np.pi / 2) for i in range(5)])
            state = spoiled(state, fault).astype(kept).astype(float)
            refused, got = expected.judge(stamp, state), np.zeros(13)
            refusal = library.judge(ctypes.c_int64(stamp), _pointer(state), _pointer(got))
            assert Refusal(refusal).name == REFUSALS[refused]
            assert got[:4].tolist() == [expected.counts[name] for name in COUNTS]
            assert got[4:8].tolist() == list(expected.finding[:4])
            np.testing.assert_allclose(got[8:], expected.finding[4:], rtol=1e-6, atol=1e-6)
            if not refused and not (event == "refuse" and j % 2):
                expected.answered(stamp, state)
                library.answered(ctypes.c_int64(stamp), _pointer(state))
        if event == "move":
            moved = (state + 0.02).astype(kept).astype(float)
            expected.moved(moved)
            library.moved(_pointer(moved))
        elif event == "restart":
            expected.restart()
            library.restart()
