# SPDX-License-Identifier: Apache-2.0
"""Emitted C: it compiles without a word, stays within its arrays, and does for a batch what it does for a state."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS, STRICT, CompiledProgram, compile_c, lane_flags, supports
from exact import Tape, tapes
from hypothesis import given, settings

from eom_dynamics import load_robot
from eom_dynamics.kernel.emit_c import c_source, scalar_sincos
from eom_dynamics.kernel.emit_python import python_function
from eom_dynamics.kernel.expressions import Expression
from eom_dynamics.kernel.program import Program, trace
from eom_dynamics.kernel.programs import PROGRAMS

SIZES = (1, 2, 7, 8, 9, 30)
COUNTS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 33)


def neighbours_program(n: int) -> Program:
    """Cheap, and each output depends on its place: inputs of n, 6 and 1 entries; n + 1, 3 and n outputs."""

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Any]]:
        a, b, (c,) = x["a"], x["b"], x["c"]
        sums = [a[i] + 2.0 * a[i - 1] + c for i in range(n)]
        return {
            "y": [*sums, 0.5],
            "z": [b[0] - b[5], b[3] * c, a[n - 1].sin()],
            "w": [a[i].cos() * b[2] for i in range(n)],
        }

    return trace(f"p{n}", {"a": n, "b": 6, "c": 1}, compute)


@pytest.fixture(scope="module", params=lane_flags())
def lanes(request: pytest.FixtureRequest) -> list[str]:
    """Compiler flags for one kind of vectors."""
    return lane_flags()[request.param]


@pytest.mark.parametrize("n", SIZES)
def test_a_batch_gives_the_bits_of_its_states(lanes: list[str], n: int, tmp_path: Path) -> None:
    """At each count, with rows that are packed, apart, or shared by all states."""
    program = CompiledProgram(c_source(neighbours_program(n)), f"p{n}", tmp_path, *lanes, "-ffp-contract=off")
    rng = np.random.default_rng(n)
    for count, apart, shared in itertools.product(COUNTS, (0, 1, 8), (False, True)):
        a = rng.uniform(-3, 3, (max(count, 1), n + apart))[:, :n]
        b = rng.uniform(-3, 3, (1 if shared else max(count, 1), 6))
        c = rng.uniform(-3, 3, (max(count, 1), 1 + apart))[:, :1]
        inputs = [a, b, c]
        outputs = [np.full((count + 2, size), 7.5) for size in (n + 1, 3, n)]
        program.batch(inputs, [y[:count] for y in outputs])
        for y in outputs:
            np.testing.assert_array_equal(y[count:], 7.5)  # nothing is written behind the last state
        for i in range(count):
            expected = [np.empty(y.shape[1]) for y in outputs]
            program.one([x[i % len(x)] for x in inputs], expected)
            for y, row in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(y[i], row)


SANITIZED_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void one(const double *const *, double *const *);
typedef void batch(size_t, const double *const *, const size_t *, double *const *);
@declarations@
static const struct { size_t n; one *one; batch *batch; } programs[] = {@programs@};

/* Exactly as many numbers as a batch of rows takes, so that the next one is out of bounds. */
static double *rows(size_t count, size_t stride, size_t size)
{
    const size_t length = count ? (count - 1) * stride + size : 0;
    double *x = malloc(length * sizeof *x);
    for (size_t i = 0; i < length; ++i)
        x[i] = (double)(i % 17) * 0.37 - 2.0;
    return x;
}

int main(void)
{
    static const size_t counts[] = {@counts@};
    for (size_t p = 0; p < sizeof programs / sizeof *programs; ++p)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k)
            for (size_t layout = 0; layout < 8; ++layout) {
                const size_t n = programs[p].n, count = counts[k];
                const size_t sizes[3] = {n, 6, 1}, results[3] = {n + 1, 3, n};
                size_t stride[3];
                double *in[3], *out[3];
                for (size_t i = 0; i < 3; ++i) {
                    stride[i] = layout == 7 ? sizes[i] + 3 : layout >> i & 1 ? 0 : sizes[i];
                    in[i] = rows(count, stride[i], sizes[i]);
                    out[i] = malloc(count * results[i] * sizeof(double));
                }
                programs[p].batch(count, (const double *const *)in, stride, out);
                for (size_t s = 0; s < count; ++s) {
                    double *row[3];
                    const double *from[3];
                    for (size_t i = 0; i < 3; ++i) {
                        row[i] = malloc(results[i] * sizeof(double));
                        from[i] = in[i] + s * stride[i];
                    }
                    programs[p].one(from, row);
                    for (size_t i = 0; i < 3; ++i) {
                        if (memcmp(row[i], out[i] + s * results[i], results[i] * sizeof(double)))
                            return printf("n %zu count %zu layout %zu state %zu\\n", n, count, layout, s), 1;
                        free(row[i]);
                    }
                }
                for (size_t i = 0; i < 3; ++i) {
                    free(in[i]);
                    free(out[i]);
                }
            }
    return 0;
}
"""


def test_nothing_beyond_the_arrays_is_touched(lanes: list[str], tmp_path: Path) -> None:
    """Under the address and undefined behaviour sanitizers, on arrays of exactly the size that is needed."""
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    if not supports(tmp_path, *sanitizers):
        pytest.skip("the compiler's sanitizers are not installed")
    programs = [neighbours_program(n) for n in SIZES]
    main = SANITIZED_MAIN.replace("@counts@", ", ".join(map(str, COUNTS)))
    main = main.replace("@declarations@", "\n".join(f"one {p.name}; batch {p.name}_batch;" for p in programs))
    names = (f"{{{n}, {p.name}, {p.name}_batch}}" for n, p in zip(SIZES, programs, strict=True))
    main = main.replace("@programs@", ", ".join(names))
    sources = [main, *map(c_source, programs)]
    compiled = compile_c(sources, tmp_path, "-std=gnu11", "-O0", "-ffp-contract=off", *lanes, *sanitizers)
    assert compiled.returncode == 0, compiled.stderr
    result = subprocess.run([str(tmp_path / "built")], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_compile_without_a_warning(program: str, compiler: str, lanes: list[str], tmp_path: Path) -> None:
    source = c_source(PROGRAMS[program](load_robot("planar_2r")))
    result = compile_c([source], tmp_path, "-std=gnu11", "-fsyntax-only", *STRICT, *lanes, compiler=compiler)
    assert not result.stderr and result.returncode == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sines_of_numbers_are_plain_c99(compiler: str, tmp_path: Path) -> None:
    source = f"#include <stdint.h>\n{scalar_sincos()}\n"
    source += "void use(double x, double *s, double *c);\nvoid use(double x, double *s, double *c)\n"
    source += "{\n    eom_sincos_any(x, s, c);\n}\n"
    strict = ["-std=c99", "-pedantic-errors", "-Wconversion", *STRICT]
    result = compile_c([source], tmp_path, "-c", *strict, compiler=compiler)
    assert not result.stderr and result.returncode == 0


def test_kernels_need_no_library() -> None:
    for program in PROGRAMS.values():
        source = c_source(program(load_robot("planar_2r")))
        assert {line for line in source.splitlines() if "#include" in line} == {
            "#include <stddef.h>",
            "#include <stdint.h>",
        }


@settings(max_examples=8)
@given(tape=tapes(trigonometry=False))
def test_c_computes_what_python_computes(tape: Tape, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Bit for bit, since both do the same operations one after the other."""
    program = trace("p", {"x": 3}, lambda x: {"y": tape.run(x["x"])})
    compiled = CompiledProgram(c_source(program), "p", tmp_path_factory.mktemp("tape"), "-O0", "-ffp-contract=off")
    x = np.random.default_rng(0).uniform(-2, 2, (11, 3))
    y, one = np.empty((11, len(program.results))), np.empty(len(program.results))
    compiled.batch([x], [y])
    for row, values in zip(x, y, strict=True):
        compiled.one([row], [one])
        expected = python_function(program)(row.tolist())
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(one, expected)
