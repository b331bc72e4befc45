# SPDX-License-Identifier: Apache-2.0
"""The emitted elementary functions against 200 bits, and over lanes against one by one."""

import ctypes
import itertools
import math

import mpmath
import numpy as np
import pytest
from compilation import COMPILERS, compile_c, lane_flags

from eom_dynamics.arrays import Array
from eom_dynamics.codegen.c_functions import csrc, elementary_source
from eom_dynamics.codegen.compiler import FLAGS

EXACT = {
    **{"exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log1p": mpmath.log1p},
    **{"sqrt": mpmath.sqrt, "tanh": mpmath.tanh},
}

# Largest errors in ulp of the exact value. Measured over two million arguments: 0.84, 1.28, 0.83, 1.37, 0.5, 2.4.
BOUNDS = {"exp": 0.9, "expm1": 1.4, "log": 0.9, "log1p": 1.5, "sqrt": 0.5, "tanh": 2.6}

NAMES = [*EXACT, "select", "where", "size", "any"]

# Volatile arguments keep the compiler from vectorizing.
LOOPS = """
void @name@_one(long count, const volatile double *x, double *y)
{
    for (long i = 0; i < count; ++i)
        y[i] = eom_@name@_one(x[i]);
}
void @name@_lanes(long count, const double *x, double *y)
{
    for (long i = 0; i < count; i += EOM_LANES) {
        lanes u;
        __builtin_memcpy(&u, x + i, sizeof u);
        u = eom_@name@_lanes(u);
        __builtin_memcpy(y + i, &u, sizeof u);
    }
}
"""

REST = """
int any_one(const double *x) { return eom_any_one(-(uint64_t)(*x > 0.0)); }
int any_lanes(const double *x)
{
    lanes u;
    __builtin_memcpy(&u, x, sizeof u);
    return eom_any_lanes((lane_words)(u > 0.0));
}
int lane_count(void) { return EOM_LANES; }
"""

CONFIGURATIONS = {
    f"{compiler}, {name}": (compiler, flags)
    for compiler, (name, flags) in itertools.product(
        COMPILERS,
        {
            "native": list(FLAGS),
            **{name: ["-O2", "-fno-tree-slp-vectorize", "-shared", *flags] for name, flags in lane_flags().items()},
            "not fused": [*FLAGS, "-ffp-contract=off"],
        }.items(),
    )
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler, flags = CONFIGURATIONS[request.param]
    source = [
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>",
        elementary_source(NAMES, "one"),
        csrc("lanes.h"),
        elementary_source(NAMES, "lanes"),
        *(LOOPS.replace("@name@", name) for name in EXACT),
        REST,
    ]
    folder = tmp_path_factory.mktemp("elementary")
    flags = ["-fPIC", "-w", *flags, "-fno-math-errno"]
    result = compile_c(["\n".join(source)], folder, *flags, compiler=compiler)
    assert result.returncode == 0, result.stderr
    return ctypes.CDLL(str(folder / "built"))


def evaluated(library: ctypes.CDLL, function: str, x: Array) -> Array:
    padded = np.concatenate([x, np.ones(17)])
    y = np.empty_like(padded)
    library[function](ctypes.c_long(len(x)), *(ctypes.c_void_p(array.ctypes.data) for array in (padded, y)))
    return y[: len(x)]


def same_bits(a: Array, b: Array) -> bool:
    return bool(np.all((a.view(np.uint64) == b.view(np.uint64)) | (np.isnan(a) & np.isnan(b))))


EDGES = np.array(
    [
        *(0.0, 5e-324, 1e-310, 2.0**-1022, 1e-300, 2.0**-54, 2.0**-53, 2.0**-29, 0.5, 1.0, 2.0, 1e3, 2.0**52, 2.0**53),
        *(2.0**60, 1e300, 2.0**1023, 1.5 * 2.0**1023, np.finfo(float).max, np.inf, np.nan, 708.4, 709.4, 709.78, 710.0),
        *(745.13, 745.14, 750.0, 1000.0, math.sqrt(0.5), math.sqrt(2.0), math.log(2.0) / 2, math.log(2.0), 40.0),
    ]
)


def arguments(count: int) -> Array:
    """Arguments of all magnitudes, dense if results are neither tiny nor infinite, and edges with their neighbors."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        edges = np.concatenate([EDGES, np.nextafter(EDGES, np.inf), np.nextafter(EDGES, -np.inf)])
    sets = [
        np.ldexp(rng.uniform(0.5, 1, count), rng.integers(-1073, 1025, count)),
        np.exp(rng.uniform(-5, 1, count)),
        np.exp(rng.uniform(0, 6.7, count)),
        1 + rng.uniform(-1, 1, count) * np.exp(rng.uniform(-30, 0, count)),
        edges,
    ]
    x = np.concatenate(sets)
    return np.concatenate([x, -x])


def exact(name: str, x: float) -> mpmath.mpf | None:
    """None if the result is infinite or not a number."""
    domain = {"log": x > 0, "log1p": x > -1, "sqrt": x >= 0}
    if not math.isfinite(x) or not domain.get(name, True):
        return None
    with mpmath.workprec(200):
        return EXACT[name](mpmath.mpf(x))


def error(y: float, expected: mpmath.mpf) -> float:
    """In ulp; a result that rounds to infinity must be infinite."""
    with mpmath.workprec(200):
        if math.isinf(rounded := float(expected)):
            return 0.0 if y == rounded else math.inf
        return float(abs(mpmath.mpf(y) - expected) / math.ulp(rounded)) if math.isfinite(y) else math.inf


@pytest.fixture(scope="module")
def expected() -> dict[str, list[tuple[float, mpmath.mpf]]]:
    values = {name: [(x, exact(name, x)) for x in arguments(50).tolist()] for name in EXACT}
    return {name: [(x, y) for x, y in pairs if y is not None] for name, pairs in values.items()}


@pytest.mark.parametrize("name", EXACT)
def test_errors(library: ctypes.CDLL, expected: dict[str, list[tuple[float, mpmath.mpf]]], name: str) -> None:
    x = np.array([x for x, _ in expected[name]])
    y = evaluated(library, f"{name}_one", x)
    worst = max(error(value, right) for value, (_, right) in zip(y.tolist(), expected[name], strict=True))
    assert worst <= BOUNDS[name]


@pytest.mark.parametrize("name", EXACT)
def test_lanes_give_the_same_bits(library: ctypes.CDLL, name: str) -> None:
    x = arguments(10_000)
    assert same_bits(evaluated(library, f"{name}_one", x), evaluated(library, f"{name}_lanes", x))


LIMITS = [
    *(("exp", np.inf, np.inf), ("exp", -np.inf, 0.0), ("exp", 709.79, np.inf), ("exp", -746.0, 0.0), ("exp", 0.0, 1.0)),
    *(("expm1", np.inf, np.inf), ("expm1", -np.inf, -1.0), ("expm1", -1000.0, -1.0), ("expm1", 709.79, np.inf)),
    *(("log", 0.0, -np.inf), ("log", -0.0, -np.inf), ("log", np.inf, np.inf), ("log", 1.0, 0.0)),
    *(("log", -1.0, np.nan), ("log", -5e-324, np.nan), ("log", -np.inf, np.nan)),
    *(("log1p", -1.0, -np.inf), ("log1p", np.inf, np.inf), ("log1p", -1.0000000000000002, np.nan)),
    *(("log1p", -np.inf, np.nan), ("sqrt", np.inf, np.inf), ("sqrt", -1.0, np.nan)),
    *(("tanh", np.inf, 1.0), ("tanh", -np.inf, -1.0), ("tanh", 1e300, 1.0), ("tanh", 20.0, 1.0)),
    *((name, zero, zero) for name in ("expm1", "log1p", "sqrt", "tanh") for zero in (0.0, -0.0)),
    *((name, tiny, tiny) for name in ("expm1", "log1p", "tanh") for tiny in (5e-324, -5e-324, 1e-300)),
    *((name, np.nan, np.nan) for name in EXACT),
]


def test_limits(library: ctypes.CDLL) -> None:
    for name, x, y in LIMITS:
        value = evaluated(library, f"{name}_one", np.array([x]))
        assert same_bits(value, np.array([y])), f"{name}({x}) is {value[0]}"


def test_selection_and_reduction(library: ctypes.CDLL) -> None:
    """A condition that is not a number, or zero, is not positive."""
    conditions = np.array([1.0, -1.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324])
    positive = [True, False, False, False, False, True, False, True]
    for condition, yes in zip(conditions, positive, strict=True):
        padded = np.array([condition])
        assert library.any_one(ctypes.c_void_p(padded.ctypes.data)) == yes
    lanes = library.lane_count()
    for lane, (condition, yes) in itertools.product(range(lanes), zip(conditions, positive, strict=True)):
        x = np.full(lanes, -1.0)
        x[lane] = condition
        assert library.any_lanes(ctypes.c_void_p(x.ctypes.data)) == yes
