# SPDX-License-Identifier: Apache-2.0
"""References of a controller that writes some rows of a motion, each millisecond: eom/references.hpp."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exported import succeed

from eom_dynamics.arrays import Array
from eom_dynamics.control.headers import loop_headers
from eom_dynamics.trajectory import Spline

DRIVER = """
#include <cstring>
#include <eom/references.hpp>

static double given[8][2], followed[8][2], ahead = -1;
static int pursued = 0;

extern "C" {
// Of the loop, what references call.
double *eom_loop_vector(eom_loop *, const char *, const char *name)
{
    const char *const names[] = {"q", "qd", "qdd", "qddd", "qdddd", "k", "kd", "kdd"};
    std::size_t row = 0;
    while (std::strcmp(names[row], name) != 0)
        ++row;
    return given[row];
}
void *eom_loop_rest(eom_loop *, int)
{
    std::memset(given, 0, sizeof given);
    return given;
}
void eom_loop_follow(eom_loop *, std::int64_t, double by)
{
    std::memcpy(followed, given, sizeof given);
    ahead = by;
}

void eom_loop_pursue(eom_loop *)
{
    std::memcpy(followed, given, sizeof given);
    ++pursued;
}

static eom::References references(*reinterpret_cast<eom_loop *>(given), 2, true);

void begin(int derivatives, double lead)
{
    references.derivatives = static_cast<eom::References::Missing>(derivatives);
    references.lead = lead;
    references.restart();
}

int refer(double *values, std::int64_t now, int keep, char *missing)
{
    const bool complete = references.read(values, now);
    if (complete && keep)
        references.keep();
    std::copy(references.missing.begin(), references.missing.end(), missing);
    return complete;
}

int pursuits() { return pursued; }

double result(double *values)
{
    std::memcpy(values, followed, sizeof followed);
    return ahead;
}
}
"""

MOTION = Spline([0.0, 1.0, 2.0], np.array([[[0.0, 0.0], [0.2, 0.1], [0.0, 0.0]], *np.zeros((4, 3, 2))]))
NAN = float("nan")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("references")
    for name, text in loop_headers().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "driver.cpp").write_text(DRIVER)
    strict = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
    succeed(["c++", *strict, "-Iinclude", "-fPIC", "-shared", "driver.cpp", "-o", "driver.so"], folder)
    library = ctypes.CDLL(str(folder / "driver.so"))
    library.result.restype = ctypes.c_double
    return library


def _pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def motion(milliseconds: float) -> Array:
    return np.stack(MOTION.derivatives(1e-3 * milliseconds))


def writer(driver: Any, *, fits: bool = False, lead: float = 0.0) -> Callable[..., Any]:
    """Write rows of the motion at a time, ms; returns the followed state (8, 2), or the missing numbers."""
    driver.begin(fits, ctypes.c_double(lead))

    def write(at: float, rows: int, *, keep: bool = True) -> Array:
        values, missing, found = np.full((8, 2), NAN), np.zeros((8, 2), dtype=np.int8), np.zeros((8, 2))
        values[:rows] = motion(at)[:rows]
        now = ctypes.c_int64(round(1e6 * at))
        complete = driver.refer(_pointer(values), now, keep, _pointer(missing))
        assert np.all(np.isnan(values))  # references that were read are cleared
        np.testing.assert_array_equal(missing[:5] == 1, np.arange(5)[:, None] >= np.full((1, 2), rows))
        assert complete == (rows >= 3)
        assert driver.result(_pointer(found)) == lead
        return found

    return write


def test_missing_jerk_and_snap_are_zero_and_a_reference_without_accelerations_is_none(driver: Any) -> None:
    write = writer(driver, lead=1e-3)
    np.testing.assert_array_equal(write(1, 5)[:5], motion(1))
    followed = write(2, 3)
    np.testing.assert_array_equal(followed[:3], motion(2)[:3])
    np.testing.assert_array_equal(followed[3:5], 0.0)
    np.testing.assert_array_equal(write(3, 2), followed)


def test_missing_jerk_and_snap_are_slopes_since_the_last_references(driver: Any) -> None:
    """A difference quotient is at the middle between two references; each derivative needs one more reference."""
    write = writer(driver, fits=True)

    def close(rows: Array, *middles: tuple[int, float]) -> None:
        for row, at in middles:
            np.testing.assert_allclose(rows[row], motion(at)[row], rtol=1e-4)

    np.testing.assert_array_equal(write(300, 3)[3:5], 0.0)
    second = write(301, 3)
    close(second, (3, 300.5))
    np.testing.assert_array_equal(second[4], 0.0)
    close(write(302, 3), (3, 301.5), (4, 301))
    close(write(304, 3), (3, 303))  # a cycle without
    write(305, 4)
    taken = write(306, 4)
    np.testing.assert_array_equal(taken[3], motion(306)[3])
    close(taken, (4, 305.5))
    write(306.5, 3, keep=False)  # a refused reference does not count
    close(write(307, 3), (3, 306.5))
    np.testing.assert_array_equal(write(508, 3)[3], 0.0)  # after a long gap


def test_positions_and_velocities_are_targets_of_the_joints_that_have_some(driver: Any) -> None:
    driver.begin(2, ctypes.c_double(0.0))
    missing, found = np.zeros((8, 2), dtype=np.int8), np.zeros((8, 2))
    before = driver.pursuits()
    cases = [
        ([[0.1, NAN], [NAN, NAN]], [0.0, 0.0]),
        ([[0.1, 0.2], [NAN, 0.3]], [0.0, 0.3]),
        ([[NAN] * 2, [1.0, 1.0]], None),
    ]
    for rows, velocities in cases:
        values = np.full((8, 2), NAN)
        values[:2] = rows
        complete = driver.refer(_pointer(values), ctypes.c_int64(10**9), 0, _pointer(missing))
        assert complete == (velocities is not None) and np.all(np.isnan(values))
        np.testing.assert_array_equal(missing, np.isnan([rows[0], *np.zeros((7, 2))]))
        if velocities is not None:
            driver.result(_pointer(found))
            np.testing.assert_array_equal(found[:2], [rows[0], velocities])
    assert driver.pursuits() == before + 2
