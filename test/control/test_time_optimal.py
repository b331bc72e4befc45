# SPDX-License-Identifier: Apache-2.0
"""Law and averages of online motion by themselves, eom/time_optimal.hpp and eom/joint_trajectory.hpp, beside Ruckig."""

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from exported import succeed

from eom_dynamics.arrays import Array
from eom_dynamics.control.headers import loop_headers

DRIVER = """
#include <eom/joint_trajectory.hpp>

extern "C" {
// Duration of the plan from a state to a target (3 numbers each) by bounds (5), and states (4) at shares of it.
double reach(const double *x, const double *y, const double *b, const double *shares, int count, double *states)
{
    eom::FollowerPlan plan;
    plan.reach({x[0], x[1], x[2]}, {y[0], y[1], y[2]}, {b[0], b[1], b[2], b[3], b[4]});
    for (int i = 0; i < count; ++i) {
        const eom::Moment at = plan.at(shares[i] * plan.end());
        const double row[] = {at.p, at.v, at.a, at.j};
        std::copy(row, row + 4, states + 4 * i);
    }
    return plan.end();
}

// Where a brake ends, at once and by its plan; returns its duration.
double brake(const double *x, const double *b, double *ends)
{
    const eom::Moment from{x[0], x[1], x[2]};
    const eom::Bounds most{b[0], b[1], b[2], b[3], b[4]};
    eom::FollowerPlan plan;
    plan.brake(from, most);
    ends[0] = eom::Rest(from, most).position;
    ends[1] = plan.at(plan.end() * (1 - 1e-15)).p;
    return plan.end();
}

// Largest magnitudes of five derivatives after each take-over, and the first ones; cycles until it rests.
int take_over(const double *numbers, const double *states, int count, double *most, double *first, double *excess)
{
    eom::JointTrajectory motion;
    eom::MotionLimits limits;
    std::copy(numbers, numbers + 8, &limits.lower);
    motion.configure(limits);
    int longest = 0;
    for (int i = 0; i < count; ++i, states += 5, most += 5, first += 5) {
        excess[i] = motion.take_over({states[0], states[1], states[2], states[3], states[4]});
        std::copy(motion.state().begin(), motion.state().end(), first);
        int cycles = 0;
        for (; !motion.arrived() && cycles < 100000; ++cycles) {
            motion.step();
            if (cycles % 7 == 0)
                motion.anchor();
            for (std::size_t k = 0; k < 5; ++k)
                most[k] = std::max(most[k], std::fabs(motion.state()[k]));
        }
        longest = std::max(longest, cycles);
    }
    return longest;
}

// Largest position of a motion between both limits, whose cycles are slowed down at random for some time at a time.
double slowed(const double *numbers, long cycles)
{
    eom::JointTrajectory motion;
    eom::MotionLimits limits;
    std::copy(numbers, numbers + 8, &limits.lower);
    motion.configure(limits);
    unsigned long seed = 1;
    const auto draw = [&seed](double most) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        return most * static_cast<double>(seed >> 33) / 2147483648.0;
    };
    const double parts[] = {1, 0.7, 0.4, 0.2, 0.1, 0}, brakes[] = {0.05, 0.25, 1};
    double most = 0, part = 1;
    for (long k = 0, target = 0, change = 0; k < cycles; ++k) {
        if (k == target) {
            motion.aim(draw(1) < 0.5 ? limits.lower : limits.upper, draw(1) < 0.3 ? draw(2) - 1 : 0);
            target += 1 + static_cast<long>(draw(1500));
        }
        if (k == change) {
            part = draw(1) < 0.5 ? 1 : parts[static_cast<int>(draw(6))];
            change += 1 + static_cast<long>(draw(60));
        }
        motion.prepare();
        motion.propose(part, brakes[static_cast<int>(draw(3))]);
        motion.step();
        most = std::max(most, std::fabs(motion.state()[0]));
    }
    return most;
}
}
"""

LIMITS = np.array([-1.0, 1.0, 2.0, 10.0, 400 / 3, 40000 / 3, 0.02, 1e-3])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("time_optimal")
    for name, text in loop_headers().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "driver.cpp").write_text(DRIVER)
    strict = ("-std=gnu++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
    succeed(["c++", *strict, "-Iinclude", "-fPIC", "-shared", "driver.cpp", "-o", "driver.so"], folder)
    library = ctypes.CDLL(str(folder / "driver.so"))
    for name in ("reach", "brake", "slowed"):
        getattr(library, name).restype = ctypes.c_double
    return library


class Case(NamedTuple):
    """A state (3,), a target at rest, and bounds: least and largest velocity and acceleration, and the jerk."""

    x: Array
    target: float
    bounds: Array


def _address(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def cases(count: int, seed: int) -> Iterator[Case]:
    """Random states from which velocities stay within bounds, near and far."""
    draw = np.random.default_rng(seed)
    while count:
        V, A = 10 ** draw.uniform(-1, 1) * 10 ** draw.uniform(-0.7, 0, 2), 10 ** draw.uniform(-0.5, 2.5, 1)
        least, most = A[0] * 10 ** draw.uniform(-0.7, 0, 2)
        J = most * 10 ** draw.uniform(0, 2)
        a = draw.uniform(-least, most)
        low, high = -V[0] + (a < 0) * a**2 / (2 * J), V[1] - (a > 0) * a**2 / (2 * J)
        if low > high:
            continue
        v = draw.uniform(low, high)
        if draw.random() < 0.1:
            a, v = 1e-3 * a, 1e-3 * v
        count -= 1
        distance = draw.choice([-1, 1]) * 10 ** draw.uniform(-6, 1)
        p = draw.uniform(-1, 1)
        yield Case(np.array([p, v, a]), p + distance, np.array([-V[0], V[1], -least, most, J]))


def plan(driver: Any, case: Case, target: Array, shares: Array) -> tuple[float, Array]:
    states = np.empty((len(shares), 4))
    addresses = [_address(x) for x in (case.x, target, case.bounds, shares)]
    return driver.reach(*addresses, len(shares), _address(states)), states


def check_durations(driver: Any, count: int, seed: int) -> None:
    ruckig = pytest.importorskip("ruckig")
    law, given, found = ruckig.Ruckig(1), ruckig.InputParameter(1), ruckig.Trajectory(1)
    for case in cases(count, seed):
        given.current_position, given.current_velocity, given.current_acceleration = ([x] for x in case.x)
        given.target_position = [case.target]
        given.min_velocity, given.max_velocity, given.min_acceleration, given.max_acceleration, given.max_jerk = (
            [x] for x in case.bounds
        )
        assert law.calculate(given, found) == ruckig.Result.Working
        duration, _ = plan(driver, case, np.array([case.target, 0.0, 0.0]), np.zeros(1))
        assert duration == pytest.approx(found.duration, rel=1e-7, abs=1e-9), case


def test_durations_are_those_of_ruckig(driver: Any) -> None:
    check_durations(driver, 5000, 0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_durations_are_those_of_ruckig_ten_million_times(driver: Any) -> None:
    check_durations(driver, 10_000_000, 1)


def test_plans_from_the_curve_of_stops_are_finite(driver: Any) -> None:
    """Where a stop has one piece of jerk, and the target is the position of rest to rounding."""
    draw, J = np.random.default_rng(5), 400 / 3
    bounds, shares = np.array([-2.0, 2.0, -10.0, 10.0, J]), np.linspace(0, 1, 20)
    for a in draw.uniform(-1, 1, 20_000):
        p, v = draw.uniform(-1e-3, 1e-3), -a * abs(a) / (2 * J)
        target = p - a**3 / (6 * J**2)
        v += draw.integers(-2, 3) * np.spacing(v)
        case = Case(np.array([p, v, a]), target + draw.integers(-2, 3) * np.spacing(target), bounds)
        target = case.target
        duration, states = plan(driver, case, np.array([target, 0.0, 0.0]), shares)
        assert np.isfinite(states).all() and 0 <= duration < 1, case


def test_rest_positions_in_closed_form_are_those_of_a_brake(driver: Any) -> None:
    """Of its plan; and of Ruckig, which brakes in the same time."""
    for case in cases(3000, 4):
        ends = np.empty(2)
        duration = driver.brake(_address(case.x), _address(case.bounds), _address(ends))
        assert ends[0] == pytest.approx(ends[1], abs=1e-12 * (1 + np.abs(ends[1])))
        stop = case._replace(target=float(ends[0]))
        assert plan(driver, stop, np.array([ends[0], 0.0, 0.0]), np.zeros(1))[0] == pytest.approx(duration, abs=1e-4)


def taken(driver: Any, states: Array, limits: Array = LIMITS) -> tuple[Array, Array, Array]:
    most, first, excess = np.zeros_like(states), np.empty_like(states), np.empty(len(states))
    addresses = [_address(x) for x in (most, first, excess)]
    assert driver.take_over(_address(limits), _address(states), len(states), *addresses) < 5000
    return most, first, excess


@pytest.mark.parametrize("smoothing", [0.0, 0.011, 0.02, 0.2])
def test_take_overs_continue_what_a_motion_within_limits_has(driver: Any, smoothing: float) -> None:
    """To rounding, and within all limits but those of acceleration and velocity, which may have to be passed."""
    limits = LIMITS.copy()
    limits[6] = smoothing
    few, many = np.sort([0.02, max(smoothing, 1e-3)])
    draw = np.random.default_rng(0)
    states = draw.uniform(-1, 1, (10_000, 5)) * [0.5, 0.8, 0.8, 1, 0] * [1, *limits[2:5], 0]
    A, J, S = limits[3:6]
    reach = np.minimum(2 * J / many, 2 * np.sqrt(J * (J - np.abs(states[:, 3])) / (few * many)))
    states[:, 4] = draw.uniform(-1, 1, len(states)) * reach
    most, first, excess = taken(driver, states, limits)
    tolerance = 1e-9 * np.array([1.0, 2.0, A, J, S])
    assert (np.abs(first - states) <= tolerance).all()
    assert (most[:, 3:] <= [J * (1 + 1e-9), S * max(1.0, 0.02 / many) * (1 + 1e-9)]).all()
    assert (most[:, 2] <= A * (1 + excess) * (1 + 1e-9)).all() and (most[:, 1] <= 2 * (1 + excess) * (1 + 1e-9)).all()


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_take_overs_of_noise_keep_jerk_and_snap(driver: Any, count: int) -> None:
    """Position and velocity go on; what no motion within limits has begins at the nearest that one has."""
    draw = np.random.default_rng(1)
    V, A, J, S = LIMITS[2:6]
    states = draw.normal(size=(count, 5)) * [0.3, 0.3 * V, 0.5 * A, 5 * J, 100 * S]
    states[:, 1] = np.clip(states[:, 1], -V, V)
    most, first, _ = taken(driver, states)
    assert (np.abs(first - states)[:, :2] <= 1e-9).all()
    assert (most[:, 3:] <= np.array([J, S]) * (1 + 1e-9)).all()
    assert (most[:, 1] <= 1.5 * V).all()
    calm = states * [1, 1, 1, 0.1, 0.005]
    most, _, _ = taken(driver, calm)
    assert (most[:, 1] <= 1.5 * V).all() and (most[:, 3:] <= np.array([J, S]) * (1 + 1e-9)).all()


def test_slower_cycles_leave_a_brake_within_limits_of_position(driver: Any) -> None:
    """One in which the follower does not turn beyond a limit on its way to rest, either."""
    assert 0.999 < driver.slowed(_address(LIMITS), ctypes.c_long(500_000)) <= 1 + 1e-9
