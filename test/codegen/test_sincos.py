# SPDX-License-Identifier: Apache-2.0
"""The emitted sine and cosine against 1300 bits, for each width of vectors that this processor has."""

import math
import re
from functools import cache

import mpmath
import numpy as np
import pytest
from compilation import CompiledProgram, lane_flags

from eom_dynamics.codegen.c_functions import scalar_sincos
from eom_dynamics.codegen.emit_c import batch_source
from eom_dynamics.codegen.program import trace

# 2^1024 has 1024 bits before the point, and an angle next to a multiple of pi/2 loses another 61 after it.
BITS = 1300

VARIANTS = {
    "one by one": ["-std=c99", "-pedantic-errors"],
    "one by one, fused": ["-march=native", "-ffp-contract=fast"],
    **lane_flags(),
    "not fused": ["-march=native", "-ffp-contract=off"],
}

ONE = """
#include <stddef.h>
#include <stdint.h>
@sincos@
void p(const double *const *in, double *const *out) { eom_sincos_any(*in[0], out[0], out[1]); }
"""

ONE_BY_ONE = """
void p_batch(size_t count, const double *const *in, const size_t *stride, double *const *out)
{
    for (size_t i = 0; i < count; ++i)
        eom_sincos_any(in[0][i * stride[0]], &out[0][i], &out[1][i]);
}
"""

# The double nearest to a multiple of pi/2, by 4.7e-19: J.-M. Muller, "Elementary functions".
HARDEST = 6381956970095103 * 2.0**797

Array = np.ndarray


@pytest.fixture(scope="module", params=VARIANTS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    if request.param.startswith("one by one"):
        batch = ONE_BY_ONE
    else:
        traced = trace("p", {"x": 1}, lambda x: {"s": [x["x"][0].sin()], "c": [x["x"][0].cos()]})
        batch = batch_source(traced, "void p_batch")
    return CompiledProgram(
        ONE.replace("@sincos@", scalar_sincos()) + batch,
        "p",
        tmp_path_factory.mktemp("sincos"),
        *VARIANTS[request.param],
    )


def sincos(program: CompiledProgram, x: Array) -> tuple[Array, Array]:
    sine, cosine = np.empty((len(x), 1)), np.empty((len(x), 1))
    program.batch([x[:, None].copy()], [sine, cosine])
    return sine[:, 0], cosine[:, 0]


@cache
def exact(x: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    with mpmath.workprec(BITS):
        return mpmath.sin(mpmath.mpf(x)), mpmath.cos(mpmath.mpf(x))


def largest_error(program: CompiledProgram, x: Array) -> float:
    worst = 0.0
    for angle, *values in zip(x.tolist(), *(y.tolist() for y in sincos(program, x)), strict=True):
        for value, expected in zip(values, exact(angle), strict=True):
            worst = max(worst, float(abs(mpmath.mpf(value) - expected) / math.ulp(float(expected))))
    return worst


def neighbours(x: Array) -> Array:
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])


def near_multiples_of_a_right_angle(up_to: float) -> Array:
    rng = np.random.default_rng(0)
    n = np.unique(np.concatenate([np.arange(32), np.exp(rng.uniform(0, np.log(up_to), 60))]).astype(np.int64))
    with mpmath.workprec(BITS):
        x = np.array([float(int(k) * mpmath.pi / 4) for k in n])
    return neighbours(np.concatenate([x, -x]))


ANGLES = {
    "within half a turn": lambda rng: rng.uniform(-4, 4, 300),
    "range of joints": lambda rng: rng.uniform(-100, 100, 100),
    "up to the limit": lambda rng: rng.uniform(-(2**20), 2**20, 100),
    "near multiples of a right angle": lambda rng: near_multiples_of_a_right_angle(2**20 / (math.pi / 4)),
    "next to the limit": lambda rng: neighbours(np.array([-(2.0**20), -(2.0**20) + 1])),
    "any magnitude below one": lambda rng: np.ldexp(rng.uniform(-1, 1, 200), rng.integers(-60, 0, 200)),
    "large": lambda rng: np.ldexp(rng.uniform(-1, 1, 300), rng.integers(20, 1024, 300)),
    "large, near multiples of a right angle": lambda rng: near_multiples_of_a_right_angle(2.0**60),
    "powers of two": lambda rng: neighbours(np.ldexp(1.0, np.arange(19, 1024, 5))),
    "the largest": lambda rng: np.array([np.finfo(float).max, -np.finfo(float).max]),
    "the hardest": lambda rng: neighbours(np.array([HARDEST, -HARDEST, HARDEST / 2, HARDEST * 2])),
}


@pytest.mark.parametrize("kind", ANGLES)
def test_errors(program: CompiledProgram, kind: str) -> None:
    """Half an ulp from the last sum, the rest from rounding its terms; measured at most 0.77.

    Above 2^20, the reduced angle is a double, rounded three times, which adds 1.5 ulp; measured at most 2.04.
    """
    angles = ANGLES[kind](np.random.default_rng(0))
    small = np.abs(angles) < 2.0**20 + 1
    assert largest_error(program, angles[small]) < 0.8 and largest_error(program, angles[~small]) < 2.5


def test_sine_of_the_smallest_angles(program: CompiledProgram) -> None:
    tiny = np.array([0.0, 5e-324, 1e-310, np.finfo(float).tiny, 1e-300, 1e-200, 2.0**-30])
    x = np.concatenate([tiny, -tiny])
    sine, cosine = sincos(program, x)
    np.testing.assert_array_equal(sine, x)
    np.testing.assert_array_equal(cosine, 1.0)


@pytest.mark.parametrize("other", [np.inf, -np.inf, np.nan, HARDEST])
def test_an_angle_that_is_large_or_not_finite_does_not_affect_others(program: CompiledProgram, other: float) -> None:
    x = np.linspace(-3, 3, 19)
    expected = np.array(sincos(program, x))
    x[5] = other
    values = np.array(sincos(program, x))
    assert np.all(np.isnan(values[:, 5]) == (other != HARDEST))
    np.testing.assert_array_equal(np.delete(values, 5, axis=1), np.delete(expected, 5, axis=1))


def test_one_angle_and_a_batch_give_the_same_bits(program: CompiledProgram) -> None:
    x = np.concatenate([np.linspace(-10, 10, 41), [HARDEST, 1e300, 2.0**20, 5e-324]])
    sine, cosine = np.empty(1), np.empty(1)
    for angle, *expected in zip(x, *sincos(program, x), strict=True):
        program.one([np.array([angle])], [sine, cosine])
        assert [*sine, *cosine] == expected


def test_words_of_two_over_pi() -> None:
    """The last words affect only the largest angles next to multiples of pi/2."""
    words = re.findall(r"0x[0-9a-f]{8}(?=[,}])", scalar_sincos())
    with mpmath.workprec(32 * len(words) + 64):
        expected = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** (32 * len(words))))
    assert int("".join(word[2:] for word in words), 16) == expected
