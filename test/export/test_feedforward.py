# SPDX-License-Identifier: Apache-2.0
"""Exported motor feedforward: its values equal the library's, for every kind of spring and any input."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilation import SANITIZERS, run, supports
from exported import (
    C_STRICT,
    MOTOR_ROBOTS,
    SPRING_ROBOTS,
    export,
    passes_c_test,
    replace_in,
    robot,
    succeed,
    with_values,
)
from linkages import four_bar

from eom_dynamics import ElasticArm, FloatingBase, Robot
from eom_dynamics.arrays import PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from eom_dynamics.codegen.program import Program
from eom_dynamics.elastic import BaseMotion
from eom_dynamics.elastic.motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SETTLED
from eom_dynamics.export import (
    FEEDFORWARD,
    FEEDFORWARD_WITH_PAYLOAD,
    FUNCTIONS,
    LANGUAGES,
    ON_BASE,
    PLANT,
    StoredValues,
    capabilities,
)

OCTAVE = shutil.which("octave-cli")

STORED = ("vsa_planar_2r", "scissors", "shared", "carried", "held", "dual_arm")
"""A robot of each kind; make soak runs the other robots of test_languages.py."""


MORE = [
    pytest.param(x, marks=pytest.mark.soak) for x in (*MOTOR_ROBOTS, "carried_0", "pendulum", "iiwa") if x not in STORED
]


def library_gives_stored_values(subject: Robot, stored: StoredValues, function: str, **options: Any) -> None:
    x = stored.inputs
    command = ElasticArm(subject).feedforward(
        *(x[key] for key in STATE_NAMES),
        wrench=[np.reshape(x[key], (stored.count, *subject.wrench_shape)) for key in WRENCH_NAMES],
        commanded_stiffness=[x[key] for key in ("k", "kd", "kdd")],
        deflection=x[DEFLECTION],
        friction_state=x[FRICTION_STATE],
        **options,
    )
    for key, values in command._asdict().items():
        allowed = stored.tolerance(function, key)[:, np.newaxis]
        assert np.all(np.abs(values - stored.outputs[function][key]) <= allowed), key


@pytest.mark.parametrize("name", [*STORED, *MORE])
def test_stored_values_are_those_of_the_arm(name: str) -> None:
    library_gives_stored_values(robot(name), with_values(robot(name), (FEEDFORWARD,))[1], FEEDFORWARD)


@pytest.mark.parametrize("name", ["shared", pytest.param("held", marks=pytest.mark.soak)])
def test_feedforward_on_a_moving_base(name: str, tmp_path: Path) -> None:
    """In C as by the closed form of a floating base, which agrees with the library, also with payloads."""
    _, stored = export(robot(name), "c", tmp_path, [ON_BASE, FEEDFORWARD_WITH_PAYLOAD])
    x = stored.inputs
    base = BaseMotion(
        np.array([x[key] for key in ("w", "wd", "wdd", "wddd")]), np.array([x[key] for key in ("f", "fd", "fdd")])
    )
    library_gives_stored_values(robot(name), stored, ON_BASE, base=base)
    payload = [x[key] for key in PAYLOAD_NAMES]
    library_gives_stored_values(robot(name), stored, ON_BASE + "_with_payload", base=base, payload=payload)
    passes_c_test(tmp_path, "-lm")


ERRORS = (
    ("sea_planar_2r_motors", "motor_effort[1] = ", "motor_effort[1] = 1e-6 + "),
    ("sea_planar_2r_motors", "motor_effort[1] = ", "motor_effort[1] = 0.0 / (tau[0] - tau[0]) + "),
    ("sea_planar_2r_motors", "v51 * 0.2;", "v51 * 0.200001;"),
    ("sea_planar_2r_feedforward", "qdd, tau, taud, taudd,", "qdd, tau, taudd, taud,"),
    ("test_sea_planar_2r_dynamics", "stored_taud[STATES][2] = {\n    {", "stored_taud[STATES][2] = {\n    {1e-6 + "),
    ("sea_planar_2r_drive_batch", "eom_batch(count, ", "eom_batch(0 * count, "),
)


def test_its_test_finds_errors(tmp_path: Path) -> None:
    export(robot("sea_planar_2r"), "c", tmp_path, [FEEDFORWARD])
    succeed(["cc", *C_STRICT, "-c", *sorted(tmp_path.glob("*.c"))], tmp_path)
    for file, old, new in ERRORS:
        changed = tmp_path / f"{file}.c"
        good = changed.read_text()
        replace_in(changed, old, new)
        others = [x for x in sorted(tmp_path.glob("*.o")) if x.stem != changed.stem]
        succeed(["cc", *C_STRICT, changed, *others, "-o", "built", "-lm"], tmp_path)
        done = run([tmp_path / "built"], tmp_path)
        assert done.returncode == 1, new
        assert "BAD" in done.stdout, new
        changed.write_text(good)


def test_capabilities() -> None:
    pytest.importorskip("casadi")
    drives = {"drive_command", "drive_command_with_payload", "drive_state"}
    absent = {"links_with_rotors", "links_with_rotors_with_payload", "filtered", "presliding"} | drives
    found = capabilities(robot("sea_planar_2r"))
    assert set(found) == set(LANGUAGES)
    for capability in found.values():
        assert set(capability.functions) == set(FUNCTIONS) - absent and set(capability.missing) == absent
    complete = capabilities(robot("carried"))["c"]
    assert FEEDFORWARD in complete.functions and "links_with_rotors" in complete.functions
    assert "rotor_model must be reduced for code of plant" in complete.missing[PLANT]
    assert "rotor_model must be reduced for code of feedforward_on_base" in complete.missing[ON_BASE]
    planar = robot("planar_2r")
    for other in (four_bar(), FloatingBase(planar)):
        for capability in capabilities(other).values():
            assert not capability.functions
            assert "without loops" in capability.missing[FEEDFORWARD]
    named = capabilities(replace(planar, name="\1"))
    assert "cannot have the name" in named["inverse_dynamics_solver"].missing[FEEDFORWARD] and not named[
        "c"
    ].missing.get("effort")


@dataclass(frozen=True)
class Motors:
    """The compiled motor side of a robot, at rest at q = 0, so that motor positions are deflections."""

    program: Program
    executable: Path

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Motor motion and efforts (states, m) for inputs (states, n); omitted inputs are zero."""
        states = len(next(iter(inputs.values())))
        rows = [inputs.get(name, np.zeros((states, size))) for name, size in self.program.inputs.items()]
        (self.executable.parent / "inputs").write_bytes(np.concatenate(rows, axis=1).tobytes())
        succeed([self.executable, "inputs", "outputs"], self.executable.parent)
        results = np.fromfile(self.executable.parent / "outputs").reshape(states, -1)
        return dict(zip(MOTOR_NAMES, np.split(results, len(MOTOR_NAMES), axis=1), strict=True))


DRIVER = """
#include "{library}.h"
#include <stdio.h>

int main(int count, char **files)
{{
    double {arrays};
    FILE *in = fopen(files[1], "rb"), *out = fopen(files[2], "wb");
    if (count != 3 || !in || !out)
        return 1;
    while ({read}) {{
        {function}({names});
        {write}
    }}
    return fclose(in) + fclose(out);
}}
"""


@pytest.fixture(scope="module")
def motors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Motors]:
    """Motor sides of the robots with all springs, compiled with sanitizers if installed."""
    sanitized = supports(tmp_path_factory.mktemp("sanitizers"), *SANITIZERS)
    return {name: _compiled(robot(name), tmp_path_factory.mktemp(name), sanitized) for name in SPRING_ROBOTS}


def _compiled(subject: Robot, folder: Path, sanitized: bool) -> Motors:
    exported, _ = export(subject, "c", folder, ["motors"])
    program = exported.programs["motors"]
    size = {**program.inputs, **program.outputs}
    text = DRIVER.format(
        library=exported.library,
        function=program.name,
        arrays=", ".join(f"{name}[{length}]" for name, length in size.items()),
        names=", ".join(size),
        read=" && ".join(f"fread({name}, sizeof {name}, 1, in)" for name in program.inputs),
        write=" ".join(f"fwrite({name}, sizeof {name}, 1, out);" for name in MOTOR_NAMES),
    )
    (folder / "driver.c").write_text(text)
    sources = ["driver.c", f"{program.name}.c"]
    succeed(["cc", *C_STRICT, "-O0", *(SANITIZERS if sanitized else ()), *sources, "-o", "driver", "-lm"], folder)
    return Motors(program, folder / "driver")


@pytest.mark.parametrize("name", SPRING_ROBOTS)
def test_springs_at_small_and_large_efforts(name: str, motors: Mapping[str, Motors]) -> None:
    """Across gaps, tables and their ends, deflections to 12 digits, or to the rounding of a table's points."""
    arm, compiled = ElasticArm(robot(name)), motors[name]
    sizes = np.concatenate([[1e-300, 1e-9, 0.3999, 0.4, 0.4001, 2.0, 9.0, 90.0, 130.0], np.geomspace(1e-3, 1e3, 60)])
    tau = np.tile(np.concatenate([-sizes, [0.0], sizes])[:, np.newaxis], 7)
    taud, taudd = 3.0 + 0.5 * tau, 20.0 - 2.0 * tau
    # Within the range of the variable spring, and above the least of the pairs.
    k = np.where(arm.paired, 2e4 + 0.0 * tau, 600.0)
    stiffness, deflection = (k, 0.2 * k, -0.7 * k), 0.01 + 0.001 * tau
    expected = arm.deflections(tau, taud, taudd, commanded_stiffness=stiffness, deflection=deflection)
    commands = dict(zip(("k", "kd", "kdd", "deflection"), (*stiffness, deflection), strict=True))
    taken = {key: value for key, value in commands.items() if key in compiled.program.inputs}
    results = compiled(tau=tau, taud=taud, taudd=taudd, **taken)
    for output, wanted in zip(MOTOR_NAMES[:3], expected[:3], strict=True):
        geared = np.transpose(arm.side.motors_of(list(wanted.T)))
        np.testing.assert_allclose(results[output], geared, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("name", SPRING_ROBOTS)
def test_any_inputs_are_read_without_a_trap(name: str, motors: Mapping[str, Motors]) -> None:
    """Sanitizers find no access out of bounds, and loops end; a NaN effort gives NaN at its motors."""
    compiled = motors[name]
    bad = [np.nan, np.inf, -np.inf, 1e308, -1e308]
    rows = [(key, value) for key in compiled.program.inputs for value in bad]
    inputs = {key: np.ones((len(rows), size)) for key, size in compiled.program.inputs.items()}
    for row, (key, value) in enumerate(rows):
        inputs[key][row] = value
    effort = compiled(**inputs)["motor_effort"]
    assert np.all(np.isnan(effort[rows.index(("tau", bad[0]))]))


def test_deflections_without_transient(motors: Mapping[str, Motors]) -> None:
    compiled, arm = motors["springs_1"], ElasticArm(robot("springs_1"))
    tau, taud, taudd = np.random.default_rng(1).uniform(-5.0, 5.0, (3, 4, 7))
    k = np.where(arm.paired, 1500.0, 400.0) + 0.0 * tau
    results = compiled(tau=tau, taud=taud, taudd=taudd, k=k, deflection=np.full((4, 7), SETTLED))
    expected = arm.deflections(tau, taud, taudd, commanded_stiffness=[k])
    np.testing.assert_allclose(results["motor_position"], expected.delta, rtol=1e-12, atol=1e-16)


def test_stiffness_out_of_range_is_nan_at_the_motors_of_the_joint(motors: Mapping[str, Motors]) -> None:
    compiled = motors["springs_1"]
    arm = ElasticArm(robot("springs_1"))
    tau = np.full((1, 7), 10.0)
    good = np.where(arm.paired, 1500.0, 400.0)[np.newaxis]
    assert np.all(np.isfinite(np.concatenate(list(compiled(tau=tau, k=good).values()))))
    for joint in np.flatnonzero(arm.variable):
        for stiffness in (0.0, -5.0, 49.0, np.nan):
            k = good.copy()
            k[0, joint] = stiffness
            for values in compiled(tau=tau, k=k).values():
                np.testing.assert_array_equal(np.isnan(values[0]), arm.motor_joint == joint)


@pytest.mark.skipif(OCTAVE is None, reason="GNU Octave is not installed (Debian: apt install octave)")
def test_octave_stiffness_out_of_range_and_omitted(tmp_path: Path) -> None:
    export(robot("vsa_planar_2r"), "matlab", tmp_path, [FEEDFORWARD])
    code = (
        "q = zeros(2, 3); W = zeros(6, 1); z = [0; 0]; r = cell(1, 7); s = cell(1, 7); t = cell(1, 7);"
        "[r{:}] = vsa_planar_2r_feedforward(q, z, z, z, z);"
        "[s{:}] = vsa_planar_2r_feedforward(z, z, z, z, z, W, W, W, [250 250 250; 120 120 120], z, z);"
        "[t{:}] = vsa_planar_2r_feedforward(z, z, z, z, z, W, W, W, [250 99 250; 120 120 59], z, z);"
        "assert(isequal(r, s) && size(r{7}, 2) == 3);"
        "for i = 4:7, assert(isequal(isnan(t{i}), logical([0 1 0; 0 1 0; 0 0 1; 0 0 1]))), end"
    )
    assert OCTAVE
    succeed([OCTAVE, "--no-gui", "--norc", "--eval", code], tmp_path)
