# SPDX-License-Identifier: Apache-2.0
"""Emitted C: compiles without warnings, stays within its arrays, and gives the same bits for a state and a batch."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS, STRICT, CompiledProgram, compile_c, lane_flags, supports
from exact import Tape, tapes
from hypothesis import given, settings
from hypothesis import strategies as st

from eom_dynamics import load_robot
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.expressions import Expression
from eom_dynamics.codegen.program import Program, c_name, trace
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.straight_line import python_function

# Vectors have this length, one more, and fewer: below, at and above each number of lanes.
N = 8
COUNTS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 33)


def neighbours_program() -> Program:
    """Inputs of N, 6 and 1 entries, outputs of N + 1, 3 and N, all of them different."""

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Any]]:
        a, b, (c,) = x["a"], x["b"], x["c"]
        sums = [a[i] + 2.0 * a[i - 1] + c for i in range(N)]
        return {
            "y": [*sums, 0.5],
            "z": [b[0] - b[5], b[3] * c, a[N - 1].sin()],
            "w": [a[i].cos() * b[2] for i in range(N)],
        }

    return trace("p", {"a": N, "b": 6, "c": 1}, compute)


@pytest.fixture(scope="module", params=lane_flags())
def lanes(request: pytest.FixtureRequest) -> list[str]:
    return lane_flags()[request.param]


SANITIZED_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void @p@(const double *const *, double *const *);
void @p@_batch(size_t, const double *const *, const size_t *, double *const *);

/* As many numbers as a batch reads, so that the next one is out of bounds. */
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
    static const size_t counts[] = {@counts@}, sizes[] = {@n@, 6, 1}, results[] = {@n@ + 1, 3, @n@};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k)
        for (size_t layout = 0; layout < 8; ++layout) {
            const size_t count = counts[k];
            size_t stride[3];
            double *in[3], *out[3];
            for (size_t i = 0; i < 3; ++i) {
                stride[i] = layout == 7 ? sizes[i] + 3 : layout >> i & 1 ? 0 : sizes[i];
                in[i] = rows(count, stride[i], sizes[i]);
                out[i] = malloc(count * results[i] * sizeof(double));
            }
            @p@_batch(count, (const double *const *)in, stride, out);
            for (size_t s = 0; s < count; ++s) {
                double *row[3];
                const double *from[3];
                for (size_t i = 0; i < 3; ++i) {
                    row[i] = malloc(results[i] * sizeof(double));
                    from[i] = in[i] + s * stride[i];
                }
                @p@(from, row);
                for (size_t i = 0; i < 3; ++i) {
                    if (memcmp(row[i], out[i] + s * results[i], results[i] * sizeof(double)))
                        return printf("count %zu layout %zu state %zu\\n", count, layout, s), 1;
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


def test_memory_accesses(lanes: list[str], tmp_path: Path) -> None:
    """With the address and undefined behavior sanitizers, on arrays of exactly the required size."""
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    if not supports(tmp_path, *sanitizers):
        pytest.skip("the compiler's sanitizers are not installed")
    main = SANITIZED_MAIN
    for mark, text in {"@p@": c_name("p"), "@n@": str(N), "@counts@": ", ".join(map(str, COUNTS))}.items():
        main = main.replace(mark, text)
    sources = [main, c_source(neighbours_program())]
    compiled = compile_c(sources, tmp_path, "-std=gnu11", "-O0", "-ffp-contract=off", *lanes, *sanitizers)
    assert compiled.returncode == 0, compiled.stderr
    result = subprocess.run([str(tmp_path / "built")], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_compile_without_warnings_and_libraries(program: str, compiler: str, tmp_path: Path) -> None:
    source = c_source(PROGRAMS[program](load_robot("planar_2r")))
    included = {line for line in source.splitlines() if "#include" in line}
    assert included == {"#include <stddef.h>", "#include <stdint.h>"}
    result = compile_c([source], tmp_path, "-std=gnu11", "-fsyntax-only", "-march=native", *STRICT, compiler=compiler)
    assert not result.stderr and result.returncode == 0


@pytest.mark.parametrize("program", ["inverse_dynamics", "mass_matrix"])
def test_kernels_have_no_variables_that_threads_share(program: str, tmp_path: Path) -> None:
    """No writable static data; a thread writes to its own arrays only."""
    source = c_source(PROGRAMS[program](load_robot("iiwa")))
    assert compile_c([source], tmp_path, "-std=gnu11", "-O1", "-march=native", "-c").returncode == 0
    symbols = subprocess.run(["nm", "built"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[-2] for line in symbols.splitlines()}
    assert "T" in kinds and not kinds & set("BbCDdGgSs"), symbols


@settings(max_examples=2)
@given(computations=st.lists(tapes(trigonometry=False), min_size=10, max_size=15))
def test_c_agrees_with_python(computations: list[Tape], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Bit for bit, since both do the same operations in the same order."""

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Any]]:
        total, kept = x["x"][0], [a * b + 1.0 for a in x["x"] for b in x["x"]]
        for k in range(60):  # which many segments use
            total = total * x["x"][k % 3] + kept[k % len(kept)]
        return {"y": [total, *(value for tape in computations for value in tape.run(x["x"]))]}

    program = trace("p", {"x": 3}, compute)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eom_dynamics.codegen.emit_c._SEGMENT", 8)  # many segments, with values in slots
        source = c_source(program)
    compiled = CompiledProgram(source, c_name("p"), tmp_path_factory.mktemp("tape"), "-O0", "-ffp-contract=off")
    x = np.random.default_rng(0).uniform(-2, 2, (11, 3))
    y, one = np.empty((11, len(program.results))), np.empty(len(program.results))
    compiled.batch([x], [y])
    for row, values in zip(x, y, strict=True):
        compiled.one([row], [one])
        expected = python_function(program)(row.tolist())
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(one, expected)
